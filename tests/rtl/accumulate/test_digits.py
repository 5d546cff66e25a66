# amaranth: UnusedElaboratable=no
"""Sums of digits, joined as rows come, equal the sums of whole mantissas."""

import numpy as np
import pytest
from amaranth import Elaboratable, Module, Signal, signed

from golden.core.digits import split
from golden.matmul import mantissa_dot
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.accumulate.digits import Digits
from rtl.accumulate.signatures import DIGITS
from rtl.lib.layout import StructLayout

from ..drive import Bench, bits, pack

TERMS, COLUMNS = 8, 4


class Joined(Elaboratable):
    """The sums of :class:`Digits` as ports."""

    def __init__(self, digits):
        self.digits = digits
        self.beat = Signal(StructLayout(dict.fromkeys(DIGITS, 1)))
        self.sums = [Signal(signed(2 * digits.narrow + 8), name=f"sum{n}") for n in range(COLUMNS)]
        self.o = [Signal(signed(2 * digits.wide + 8), name=f"o{n}") for n in range(COLUMNS)]

    def elaborate(self, platform):
        m = Module()
        totals = self.digits.join(m, "s", self.sums, self.beat)
        self.widths = [len(total) for total in totals]
        m.d.comb += [o.eq(total) for o, total in zip(self.o, totals, strict=True)]
        return m


def operands(rng, shape, bits):
    """Mantissas with the largest sums among them."""
    limit = 2 ** (bits - 1) - 1
    x = rng.integers(-limit, limit + 1, shape)
    x[0] = limit * rng.choice([-1, 1])
    return x


def rows_of(rng, narrow, wide, count):
    """Rows in random modes: what is shown in each cycle, and what even columns have to give."""
    beats = []
    most = 2 ** (narrow - 1) - 1
    for _ in range(count):
        wide_x, wide_w = (bool(bit) for bit in rng.integers(0, 2, 2))
        pairs = wide_x or wide_w
        x = operands(rng, (2, TERMS), wide if wide_x else narrow)[int(rng.integers(2))]
        w = operands(rng, (COLUMNS // (1 + pairs), TERMS), wide if wide_w else narrow)
        columns = w
        if pairs:
            high, low = split(w, narrow, wide) if wide_w else (operands(rng, w.shape, narrow), w)
            columns = np.stack([low, high], 1).reshape(COLUMNS, TERMS)
        total = mantissa_dot(x, w).tolist()
        digits = split(x, narrow, wide) if wide_x else (x,)
        for place, digit in enumerate(digits):
            if place:    # the low digits may be late, with anything in their place
                beats += [({"high": 0, "waits": 1, "pair": int(wide_w)}, rng.integers(-most, most, COLUMNS), None)
                          for _ in range(int(rng.integers(0, 3)))]
            final = place == len(digits) - 1
            beats.append(({"high": int(not final), "waits": 0, "pair": int(wide_w)}, mantissa_dot(digit, columns),
                          (total, 1 + pairs) if final else None))
        beats += [({"high": 0, "waits": 0, "pair": int(rng.integers(2))}, rng.integers(-most, most, COLUMNS), None)
                  for _ in range(int(rng.integers(0, 2)))]
    return beats


@pytest.mark.parametrize("narrow, wide", [(2, 3), (4, 6), (4, 7), (8, 12), (8, 15)])
def test_sums_of_digits_are_sums_of_mantissas(narrow, wide):
    dut, rng = Joined(Digits(narrow, wide, TERMS)), np.random.default_rng([narrow, wide])
    beats = rows_of(rng, narrow, wide, 150)
    seen = []

    async def play(ctx):
        for flags, sums, want in beats:
            ctx.set(bits(dut.beat), pack(dut.beat.shape(), **flags))
            for port, value in zip(dut.sums, sums, strict=True):
                ctx.set(port, int(value))
            await ctx.delay(1e-7)
            if want:
                total, step = want
                assert [ctx.get(port) for port in dut.o][::step] == total, flags
                seen.append(step)
            await ctx.tick()
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    assert set(seen) == {1, 2}
    assert dut.widths == [HBFPFormat(mantissa=bits).sum_width(TERMS) if n % 2 == 0 else 2 * narrow + 8
                          for n, bits in enumerate([wide] * COLUMNS)]


def test_only_wide_designs_have_them():
    assert Digits.of(Design()) is None
    assert Digits.of(Design(format=HBFPFormat(mantissa=4, block=(1, 8)), wide=6)) == Digits(4, 6, 8)
