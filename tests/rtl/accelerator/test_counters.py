# amaranth: UnusedElaboratable=no
"""Counters count every event, whoever reads them, and start anew when they are cleared."""

import numpy as np
from amaranth.sim import Simulator

from rtl.accelerator.counters import Counters

COUNT = 24


def test_nothing_is_lost():
    """Random events and reads; twice, with what came before the second time forgotten."""
    rng, counters = np.random.default_rng(1), Counters(COUNT)

    async def read(ctx, number):
        ctx.set(counters.r_en, 1)
        ctx.set(counters.r_addr, number)
        await ctx.tick()
        ctx.set(counters.r_en, 0)
        return ctx.get(counters.r_data)

    async def bench(ctx):
        for _ in range(2):
            expected = np.zeros(COUNT, int)
            ctx.set(counters.clear, 1)
            ctx.set(counters.events, (1 << COUNT) - 1)
            await ctx.tick()
            ctx.set(counters.clear, 0)
            shown = 0
            for cycle in range(1200):
                events = rng.random(COUNT) < (1, 0.5)[cycle < 600]
                expected += events
                ctx.set(counters.events, int(sum(1 << n for n in np.flatnonzero(events))))
                if cycle % 3 == 0 and rng.random() < 0.9:    # as often as a bus can
                    number = int(rng.integers(0, COUNT))
                    value = await read(ctx, number)
                    if cycle > 100:
                        assert 0 <= expected[number] - value <= 2 * COUNT
                        shown += value > 0
                else:
                    await ctx.tick()
            ctx.set(counters.events, 0)
            assert shown > 200
            for _ in range(2 * COUNT):
                await ctx.tick()
            assert [await read(ctx, number) for number in range(COUNT)] == expected.tolist()
    sim = Simulator(counters)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
