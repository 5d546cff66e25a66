"""Rows of full adders add, whichever of their bits are constant."""

import itertools
import random

from amaranth import Module, Signal, signed, unsigned
from amaranth.sim import Simulator

from rtl.fixed.ripple import add_ripple, bits_of

WIDTH = 3


def mixed(signal, known):
    """The bits of a signal, with the known ones in place of those that are not None."""
    return [signal[n] if bit is None else bit for n, bit in enumerate(known)]


def value(number, known):
    return sum((number >> n & 1 if bit is None else bit) << n for n, bit in enumerate(known))


def test_sum_and_carry_with_constant_bits():
    """All sums of three bits, for 80 choices of the bits that are known, and both and any carries."""
    rng = random.Random(1)
    m, a, b, c = Module(), Signal(WIDTH), Signal(WIDTH), Signal()
    cases = [((None,) * WIDTH, (None,) * WIDTH, known) for known in (None, 0, 1)]
    cases += [(*(tuple(rng.choice((None, None, 0, 1)) for _ in range(WIDTH)) for _ in range(2)),
               rng.choice((None, 0, 1))) for _ in range(77)]
    results = []
    for n, (left, right, carry) in enumerate(cases):
        total, last = add_ripple(m, mixed(a, left), mixed(b, right), f"sum{n}", c if carry is None else carry)
        out = Signal(WIDTH + 1, name=f"out{n}")
        m.d.comb += [out[:WIDTH].eq(total), out[WIDTH].eq(last)]
        results.append(out)

    async def bench(ctx):
        for x, y, z in itertools.product(range(2 ** WIDTH), range(2 ** WIDTH), range(2)):
            for signal, number in ((a, x), (b, y), (c, z)):
                ctx.set(signal, number)
            await ctx.delay(1e-9)
            for out, (left, right, carry) in zip(results, cases, strict=True):
                want = value(x, left) + value(y, right) + (z if carry is None else carry)
                assert ctx.get(out) == want, (left, right, carry, x, y, z)

    sim = Simulator(m)
    sim.add_testbench(bench)
    sim.run()


def test_bits_are_extended_by_the_sign():
    narrow, number = Signal(unsigned(2)), Signal(signed(2))
    assert bits_of(narrow, 4)[2:] == [0, 0] and len(bits_of(narrow, 1)) == 1
    assert [repr(bit) for bit in bits_of(number, 4)[2:]] == [repr(number[1])] * 2
