# amaranth: UnusedElaboratable=no
"""The queue gives what it took, in order, holds its depth, and needs two cycles."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.lib.fifo import Fifo


@pytest.mark.parametrize("depth", [2, 3, 4, 7])
def test_every_cycle_is_as_the_model_says(depth):
    """Random pauses on both sides; full and empty are met."""
    rng = np.random.default_rng(depth)
    fifo, seen = Fifo(depth, 9), set()

    async def bench(ctx):
        waiting, head, taken = [], None, 0    # (word, cycle in which it was taken), what is offered
        for cycle in range(600):
            eager = cycle // 100 % 3
            give, take = rng.random() < (0.9, 0.5, 0.3)[eager], rng.random() < (0.3, 0.5, 0.9)[eager]
            ctx.set(fifo.i.valid, int(give))
            ctx.set(fifo.i.payload, taken & 511)
            ctx.set(fifo.o.ready, int(take))
            held = len(waiting) + (head is not None)
            seen.add(held)
            assert ctx.get(fifo.o.valid) == (head is not None)
            if head is not None:
                assert ctx.get(fifo.o.payload) == head & 511
            assert ctx.get(fifo.empty) == (held == 0)
            assert ctx.get(fifo.i.ready) == (held != depth)
            if head is None or take:
                head = waiting.pop(0) if waiting else None
            if give and held != depth:
                waiting.append(taken)
                taken += 1
            await ctx.tick()
    sim = Simulator(fifo)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert seen == set(range(depth + 1))
