# amaranth: UnusedElaboratable=no
"""A queue offers an instruction exactly when the rule of its docstring says so."""

import numpy as np
import pytest
from amaranth import Value
from amaranth.sim import Simulator

from rtl.accelerator.queue import Queue

DEPTH = 3


class Model:
    """The queue by its docstring: entries are (waits, nop, number)."""

    def __init__(self, holds):
        self.behind, self.head, self.at, self.taken, self.number, self.holds = [], None, 0, 0, 0, holds

    def outputs(self, counts):
        """(i.ready, o.valid, nop, waiting, empty, busy)."""
        ready = waiting = False
        if self.head:
            waits, _, _ = self.head
            unit, count = waits[self.at]
            last = not any(unit for unit, _ in waits[self.at + 1:])
            good = count <= (counts[unit - 1] if unit else 0)
            ready, waiting = good and last, not (good and last)
            self.more = good and not last
        nop = bool(ready and self.head[1] and not self.taken)
        held = len(self.behind) + bool(self.head)
        return held < DEPTH, bool(ready and not self.head[1]), nop, waiting, held == 0 and not self.taken, bool(
            self.taken)

    def tick(self, counts, entry, take, done):
        """One cycle; ``entry`` is what is offered, ``take`` the unit's ready."""
        room, valid, nop, waiting, _, _ = self.outputs(counts)
        taken = valid and take
        if taken:
            self.number = self.head[2]
        self.taken += taken - done
        self.at = 0 if taken or nop else self.at + (waiting and self.more)
        if taken or nop or not self.head:
            self.head = self.behind.pop(0) if self.behind else None
        if entry and room:
            self.behind.append(entry)
        return entry and room


def word(entry, fields):
    """Bits of an entry."""
    waits, nop, number = entry
    value = fields | nop << 5 | number << 6 | (fields * 37 % 128) << 111
    for n, (unit, count) in enumerate(waits):
        value |= (unit | count << 3) << 30 + 27 * n
    return value


@pytest.mark.parametrize("holds", [False, True])
def test_every_cycle_is_as_the_model_says(holds):
    """Waits of none to three, NOPs, units that work for a while; every output in every cycle."""
    rng, queue, model = np.random.default_rng(holds), Queue(DEPTH, 5, 0 if holds else 7), Model(holds)
    seen = set()

    def draw(number, counts):
        waits = [(0, 0)] * 3
        for n in range(3):
            if rng.random() < 0.5:
                unit = int(rng.integers(1, 8))
                waits[n] = unit, max(0, counts[unit - 1] + int(rng.integers(-2, 3)))
        return tuple(waits), int(rng.random() < 0.2), number

    async def bench(ctx):
        counts, number = [int(count) for count in rng.integers(0, 5, 7)], 0
        entry = draw(number, counts)
        for _ in range(1500):
            give, take = rng.random() < 0.6, rng.random() < 0.6
            done = bool(model.taken and rng.random() < 0.4)
            ctx.set(queue.i.valid, int(give))
            ctx.set(Value.cast(queue.i.payload), word(entry, entry[2] % 32) % 2 ** len(Value.cast(queue.i.payload)))
            ctx.set(Value.cast(queue.counts), sum(count << 24 * n for n, count in enumerate(counts)))
            ctx.set(queue.o.ready, int(take))
            ctx.set(queue.done, int(done))
            expected = model.outputs(counts)
            got = tuple(map(ctx.get, (queue.i.ready, queue.o.valid, queue.nop, queue.waiting, queue.empty, queue.busy)))
            assert got == expected
            assert ctx.get(queue.completed) == (done or expected[2])
            seen.add(expected)
            if expected[1]:
                assert ctx.get(queue.o.payload) == model.head[2] % 32
            if holds and model.head:
                assert ctx.get(queue.number) == model.head[2]
            if not holds and model.taken:
                assert ctx.get(queue.number) == model.number
                assert ctx.get(queue.held) == model.number % 32 * 37 % 128
            if model.tick(counts, entry if give else None, take, done):
                number += 1
                entry = draw(number, counts)
            for n in range(7):
                counts[n] += int(rng.random() < 0.1)
            await ctx.tick()
        assert number > 150
    sim = Simulator(queue)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert len(seen) > 12
