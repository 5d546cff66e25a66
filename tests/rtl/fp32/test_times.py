# amaranth: UnusedElaboratable=no
"""Products of whole numbers, however they are formed; covers rtl/fp32/times.py.

Covers: rtl/fp32/multiply.py.
"""

from itertools import product

import pytest
from amaranth import signed, unsigned
from amaranth.sim import Simulator

from rtl.fp32.times import Times
from tests.cases import cover

SHAPES = [shape(width) for shape in (unsigned, signed) for width in (1, 3, 4)]


def numbers(shape):
    return range(-(1 << shape.width - 1), 1 << shape.width - 1) if shape.signed else range(1 << shape.width)


@pytest.mark.parametrize("a, b, low", cover(SHAPES, SHAPES, [0, 2]), ids=str)
def test_all_products(a, b, low):
    """Of digits two and one bits wide, with and without signs."""
    dut = Times(a, b, low if a.width + b.width > low else 0, "recoded")
    got = {}

    async def bench(ctx):
        for x, y in product(numbers(a), numbers(b)):
            ctx.set(dut.a, x)
            ctx.set(dut.b, y)
            await ctx.delay(1e-9)
            got[x, y] = ctx.get(dut.o)
    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()
    assert got == {(x, y): x * y >> dut.params.low for x, y in product(numbers(a), numbers(b))}
