# amaranth: UnusedElaboratable=no
"""Counters count every event, whoever reads them, and start anew when they are cleared.

Covers: rtl/accelerator/counters_apart.py.
"""

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.accelerator.counters import Counters
from rtl.accelerator.counters_apart import CountersApart

COUNT = 24


@pytest.mark.parametrize("contexts, apart", [
    (1, False), pytest.param(2, False, marks=pytest.mark.slow), (2, True)])
def test_nothing_is_lost(contexts, apart):
    """Random events and reads; twice, with what came before the second time forgotten; each context has its own."""
    rng, counters = np.random.default_rng(1), CountersApart(COUNT) if apart else Counters(COUNT, contexts)
    lag = 4 * COUNT if apart else 2 * COUNT
    low = (COUNT - 1).bit_length()

    async def read(ctx, number):
        ctx.set(counters.r_en, 1)
        ctx.set(counters.r_addr, number)
        await ctx.tick()
        ctx.set(counters.r_en, 0)
        return ctx.get(counters.r_data) if ctx.get(counters.r_known) else 0

    async def bench(ctx):
        kept = []
        for turn in range(2 * contexts):
            own = turn % contexts
            if contexts > 1:
                ctx.set(counters.owner, own)
            expected = np.zeros(COUNT, int)
            ctx.set(counters.clear, 1)
            ctx.set(counters.events, (1 << COUNT) - 1)
            await ctx.tick()
            ctx.set(counters.clear, 0)
            shown = 0
            for cycle in range(800):
                events = rng.random(COUNT) < (1, 0.5)[cycle < 400]
                expected += events
                ctx.set(counters.events, int(sum(1 << n for n in np.flatnonzero(events))))
                if cycle % 3 == 0 and rng.random() < 0.9:    # as often as a bus can
                    number = int(rng.integers(0, COUNT))
                    value = await read(ctx, own << low | number)
                    assert 0 <= expected[number] - value <= lag
                    shown += value > 0
                else:
                    await ctx.tick()
            ctx.set(counters.events, 0)
            assert shown > 130
            for _ in range(lag):
                await ctx.tick()
            kept = kept[-contexts + 1:] if contexts > 1 else []
            kept.append((own, expected.tolist()))
            for context, values in kept:
                assert [await read(ctx, context << low | number) for number in range(COUNT)] == values
        for turn in range(60 * (contexts - 1)):    # they take turns, and are not cleared
            own, values = kept[turn % 2]
            ctx.set(counters.owner, own)
            for _ in range(int(rng.integers(1, 60))):
                number = int(rng.integers(COUNT))
                ctx.set(counters.events, 1 << number)
                values[number] += 1
                await ctx.tick()
            ctx.set(counters.events, 0)
            checks = not apart or rng.random() < 0.2
            for _ in range(lag if checks else 0):
                await ctx.tick()
            for context, values in kept if checks else ():
                assert [await read(ctx, context << low | number) for number in range(COUNT)] == values
    sim = Simulator(counters)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
