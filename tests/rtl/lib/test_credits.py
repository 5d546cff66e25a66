# amaranth: UnusedElaboratable=no
"""The queue never gets more than it holds, gives everything in order, and is never in the way at full speed.

Covers: rtl/lib/fanout.py.
"""

import numpy as np
import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from rtl.lib.credits import CreditQueue
from rtl.lib.fanout import branches


def run(depth, cycles, parts, eager, take, seed, length=400):
    """Words of a pipeline of some cycles, and the cycles in which they left; each part is written a cycle later."""
    queue, rng = CreditQueue(depth, 8 * parts, parts), np.random.default_rng(seed)
    got, left, started = [], [], []

    async def bench(ctx):
        way, number, pause, held = {}, 0, 0, None
        for cycle in range(length):
            starts = ctx.get(queue.room) and pause == 0 and rng.random() < eager
            ctx.set(queue.starts, int(starts))
            pause = parts - 1 if starts else max(pause - 1, 0)
            if starts:
                for part in range(parts):
                    way[cycle + cycles - parts + 1 + part] = part, number * 7 + part
                started.append(cycle)
                number += 1
            part, value = way.pop(cycle, (None, 0))
            ctx.set(queue.w_en, 0 if part is None else 1 << part)
            ctx.set(queue.w_data, (value & 255) << 8 * (part or 0))
            ready = rng.random() < take
            ctx.set(queue.o.ready, int(ready))
            _, _, valid, word = await ctx.tick().sample(queue.o.valid, queue.o.payload)
            assert held is None or (valid and word == held)    # what is offered stays
            held = word if valid and not ready else None
            if valid and ready:
                got.append(word)
                left.append(cycle)
    sim = Simulator(queue)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    want = [sum(((n * 7 + part) & 255) << 8 * part for part in range(parts)) for n in range(len(got))]
    assert got == want
    return started, left


@pytest.mark.parametrize("cycles", [1, 2, 5, 9])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_nothing_waits_with_as_many_words_as_it_says(cycles, parts):
    cycles += parts - 1
    depth = CreditQueue.words(cycles, parts)
    started, left = run(depth, cycles, parts, 1, 1, 0)
    assert started == list(range(0, 400, parts))
    assert left == [cycle + cycles + 2 for cycle in started][:len(left)] and len(left) > 80


def test_a_word_less_is_in_the_way():
    started, _ = run(CreditQueue.words(5) - 1, 5, 1, 1, 1, 0)
    assert len(started) < 400


@pytest.mark.parametrize("depth", [2, 3, 8])
@pytest.mark.parametrize("eager, take", [(1, 0.2), (0.4, 1), (0.7, 0.6), (1, 0.95)])
def test_order_and_room(depth, eager, take):
    """Words that find no room would be overwritten before they leave."""
    started, left = run(depth, 3, 1, eager, take, depth)
    assert len(started) - len(left) <= depth + 1 and len(left) > 40


def test_branches_are_the_value_a_cycle_later():
    m, value, seen = Module(), Signal(5), []
    copies = branches(m, value, 3, "copy")

    async def bench(ctx):
        for n in range(10):
            ctx.set(value, n)
            await ctx.tick()
            seen.append([ctx.get(copy) for copy in copies])
    sim = Simulator(m)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert seen == [[n] * 3 for n in range(10)]
