"""A value is picked by its number."""

import pytest
from amaranth import Const, Module, Signal
from amaranth.sim import Simulator

from rtl.lib.pick import pick


@pytest.mark.parametrize("count", [1, 2, 8])
def test_each_value_is_picked(count):
    m, number, result = Module(), Signal(max(1, (count - 1).bit_length())), Signal(8)
    m.d.comb += result.eq(pick([Const(17 * n, 8) for n in range(count)], number))

    async def play(ctx):
        for n in range(count):
            ctx.set(number, n)
            assert ctx.get(result) == 17 * n
    sim = Simulator(m)
    sim.add_testbench(play)
    sim.run()
