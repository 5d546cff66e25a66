"""Adders whose carries are a parallel prefix add.

Covers: rtl/lib/signals.py.
"""

import itertools
import random

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from rtl.fixed.prefix import add_chain, add_prefix, sum_prefix


def run(m, inputs, out, cases):
    """The value of ``out`` in each case."""
    found = []

    async def bench(ctx):
        for values in cases:
            for signal, number in zip(inputs, values, strict=True):
                ctx.set(signal, number)
            await ctx.delay(1e-9)
            found.append(ctx.get(out))
    sim = Simulator(m)
    sim.add_testbench(bench)
    sim.run()
    return found


@pytest.mark.parametrize("add", [add_prefix, add_chain])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 27, 48])
def test_sum_and_carry(width, add):
    m, a, b, c, out = Module(), Signal(width), Signal(width), Signal(), Signal(width + 1)
    m.d.comb += out.eq(add(m, a, b, "sum", c))
    top, rng = 2 ** width - 1, random.Random(width)
    cases = list(itertools.product(range(top + 1), range(top + 1), range(2))) if width < 5 else [
        *((x, y, z) for x in (0, 1, top - 1, top) for y in (0, 1, top // 2, top) for z in range(2)),
        *((1 << n, top, 0) for n in range(width)), *((top >> n, 1, 1) for n in range(width)),
        *((rng.getrandbits(width), rng.getrandbits(width), rng.getrandbits(1)) for _ in range(300))]
    assert run(m, [a, b, c], out, cases) == [sum(case) for case in cases]


@pytest.mark.parametrize("carry", [0, 1])
def test_constant_carry(carry):
    m, a, b, out = Module(), Signal(3), Signal(3), Signal(4)
    m.d.comb += out.eq(add_prefix(m, a, b, "sum", carry))
    cases = list(itertools.product(range(8), range(8)))
    assert run(m, [a, b], out, cases) == [x + y + carry for x, y in cases]


@pytest.mark.parametrize("widths", [(3,), (2, 4), (3, 1, 5), (6, 6, 6, 6), (4, 9, 2, 7, 7, 1, 3)], ids=str)
@pytest.mark.parametrize("width", [4, 10])
def test_lowest_bits_of_a_sum_of_many(widths, width):
    m, out, rng = Module(), Signal(width), random.Random(width)
    inputs = [Signal(bits, name=f"in{n}") for n, bits in enumerate(widths)]
    m.d.comb += out.eq(sum_prefix(m, inputs, width, "sum"))
    cases = [[2 ** bits - 1 for bits in widths], *([rng.getrandbits(bits) for bits in widths] for _ in range(200))]
    assert run(m, inputs, out, cases) == [sum(case) % 2 ** width for case in cases]
