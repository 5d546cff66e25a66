# amaranth: UnusedElaboratable=no
"""Recoded dot products equal the integer ones.

Covers: rtl/fixed/compressor.py.
"""

import itertools

import numpy as np
import pytest
from amaranth import Module, signed
from amaranth.sim import Simulator

from rtl.fixed.booth import BoothDot, BoothRecoder, Correction, biased_shape, correction_shape, digit_kinds
from tests.cases import sweep


def limits(width):
    return -2 ** (width - 1) + 1, 2 ** (width - 1) - 1


def sample(width):
    """Every value, or for wide operands both ends, the middle and random ones."""
    low, high = limits(width)
    if width <= 10:
        return list(range(low, high + 1))
    rng = np.random.default_rng(width)
    return [*range(low, low + 99), *range(-99, 99), *range(high - 99, high + 1),
            *rng.integers(low, high, 500, endpoint=True).tolist()]


def codes(width, values):
    """Codes of ``values``, from the hardware."""
    dut, found = BoothRecoder(width), []

    async def bench(ctx):
        for value in values:
            ctx.set(dut.i, value)
            await ctx.delay(1e-9)
            found.append(ctx.get(dut.o))

    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()
    return found


def decode(code, width):
    """The digits of a code, lowest first."""
    digits = []
    for kind in digit_kinds(width):
        lines = 2 if kind == "ternary" else 3
        a, b, c = code & 1, code >> 1 & 1, code >> 2 & 1
        digits.append({"low": a - b + 2 * c, "booth": (1 - 2 * c) * (a + 2 * b), "ternary": a - b}[kind])
        code >>= lines
    return digits


@pytest.mark.parametrize("width", range(2, 17))
def test_digits_make_the_activation(width):
    values = sample(width)
    for value, code in zip(values, codes(width, values), strict=True):
        digits = decode(code, width)
        assert sum(d * 4 ** k for k, d in enumerate(digits)) == value


@pytest.mark.parametrize("width", range(2, 17))
def test_lines_are_one_hot(width):
    """No digit has two lines at once, and a zero is not negative: the correction would count it."""
    for code in codes(width, sample(width)):
        for kind in digit_kinds(width):
            lines = 2 if kind == "ternary" else 3
            one, second, third = code & 1, code >> 1 & 1, code >> 2 & 1 if lines == 3 else 0
            if kind == "booth":
                assert one + second <= 1 and third <= one + second
            else:
                assert one + second + third <= 1
            code >>= lines


def run(width, terms, north, rows, quick=False, lead=0):
    """Sums of ``rows`` of (acts, weights, north), the corrections added; ``north`` comes ``lead`` cycles later."""
    below = biased_shape(width, 3 * terms, terms) if north else biased_shape(width, terms, terms)
    dut, correction = BoothDot(width, terms, north, below, quick=quick, lead=lead), Correction(width, terms)
    values = sorted({act for acts, _, _ in rows for act in acts})
    known = dict(zip(values, codes(width, values), strict=True))
    found = []

    async def bench(ctx):
        for acts, weights, above in rows:
            for n in range(terms):
                ctx.set(dut.code[n], known[acts[n]])
                ctx.set(correction.code[n], known[acts[n]])
                ctx.set(dut.weight[n], weights[n])
            await ctx.delay(1e-9)
            corrected = ctx.get(correction.o)
            for _ in range(lead):
                await ctx.tick()
                ctx.set(dut.code.as_value(), 0)
            if north:
                ctx.set(dut.north, above)
            await ctx.delay(1e-9)
            found.append(ctx.get(dut.south) + corrected)

    m = Module()
    m.submodules.dut, m.submodules.correction = dut, correction
    sim = Simulator(m)
    if lead:
        sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    return found


def expected(rows):
    return [sum(a * w for a, w in zip(acts, weights, strict=True)) + above for acts, weights, above in rows]


@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_every_product(width):
    values = range(limits(width)[0], limits(width)[1] + 1)
    rows = [([a], [w], 0) for a, w in itertools.product(values, values)]
    assert run(width, 1, None, rows) == expected(rows)


@pytest.mark.parametrize("width, terms, quick, lead", sweep(4, [
    *((width, terms, False, 0) for width, terms in (
        (2, 4), (3, 4), (4, 4), (5, 2), (6, 2), (7, 1), (8, 1), (8, 2), (12, 1), (16, 1))),
    *((width, terms, True, lead) for width, terms in ((2, 4), (3, 4), (5, 2), (8, 2)) for lead in range(2))]))
def test_extremes_and_random_sums(width, terms, quick, lead):
    low, high = limits(width)
    rng = np.random.default_rng(width * 100 + terms)
    north = signed((2 * terms * high ** 2).bit_length() + 1)
    most = 2 * terms * high ** 2
    corners = [low, -1, 0, high]
    rows = [([a] * terms, [w] * terms, p) for a in corners for w in corners for p in (-most, most)]
    rows += [(rng.integers(low, high, terms, endpoint=True).tolist(),
              rng.integers(low, high, terms, endpoint=True).tolist(),
              int(rng.integers(-most, most, endpoint=True))) for _ in range(30)]
    assert run(width, terms, north, rows, quick, lead) == expected(rows)


@pytest.mark.parametrize("width, terms", [(2, 1), (4, 32), (8, 8), (8, 32), (16, 256)])
def test_correction_fits(width, terms):
    """Every digit negative in every activation needs the last bit."""
    highest = terms * sum(4 ** k for k in range(len(digit_kinds(width))))
    bits = correction_shape(width, terms).width
    assert 2 ** (bits - 1) <= highest < 2 ** bits


@pytest.mark.parametrize("width", [4, 8])
def test_unsigned_north_is_not_sign_extended(width):
    """A correction enters at the top: its highest bit counts positive."""
    terms = 2
    dut = BoothDot(width, terms, correction_shape(width, terms), biased_shape(width, terms, terms))
    top = 2 ** correction_shape(width, terms).width - 1

    async def bench(ctx):
        ctx.set(dut.north, top)
        await ctx.delay(1e-9)
        assert ctx.get(dut.south) == top

    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()


def test_modules_are_told_apart():
    assert BoothDot(8, 8, signed(18), signed(19)).module == "hbfp_booth_dot_m8_t8_n18_s19"
    assert BoothDot(8, 8, correction_shape(8, 32), signed(19)).module == "hbfp_booth_dot_m8_t8_n12u_s19"
    assert BoothDot(8, 8, signed(18), signed(19), quick=True).module == "hbfp_booth_dot_m8_t8_n18_s19_quick"
