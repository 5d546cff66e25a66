"""The golden arithmetic against exact values: small formats everywhere, FP32 by fractions and softfloat."""

from fractions import Fraction

import numpy as np
import pytest
import softfloatpy

import golden.fp32 as fp32
from golden.spec.floats import BF16, FloatFormat
from tests.golden.exact import exact_fp32
from tests.golden.fp32_fields import addends, factors
from tests.golden.fp32_values import canonical, random_pairs, specials

TINY = [FloatFormat(2, 1), FloatFormat(2, 2), FloatFormat(3, 2), FloatFormat(2, 3)]
SMALL = [FloatFormat(4, 3), FloatFormat(5, 2), FloatFormat(3, 4)]


def decode(bits, fmt, subnormals):
    """Exact values in float64."""
    bits = np.asarray(bits)
    field, fraction = bits >> fmt.fraction & fmt.top, bits & ((1 << fmt.fraction) - 1)
    value = np.where(field > 0, (1 << fmt.fraction) + fraction, fraction if subnormals == "gradual" else 0)
    value = np.ldexp(value.astype(float), np.maximum(field, 1) - fmt.bias - fmt.fraction)
    value = np.where(field == fmt.top, np.where(fraction == 0, np.inf, np.nan), value)
    return np.where(bits >> (fmt.width - 1), -value, value)


def encode(value, fmt, subnormals):
    """Nearest of the listed numbers of the format, ties to the even pattern."""
    magnitudes = np.arange(fmt.inf + 1)
    grid = decode(magnitudes, fmt, "gradual")
    grid[-1] = 2.0 ** (fmt.top - fmt.bias)    # where Inf stands for rounding
    if subnormals == "flush":
        # As if exponents had no end below: 2 more binades are enough to judge after rounding.
        normal = magnitudes >= 1 << fmt.fraction
        more = np.concatenate([grid[normal][:1 << fmt.fraction] / 4, grid[normal][:1 << fmt.fraction] / 2])
        grid = np.concatenate([[0], more, grid[normal]])
        magnitudes = np.concatenate([np.zeros(1 + more.size, int), magnitudes[normal]])
    parity = np.arange(grid.size) + (1 if subnormals == "flush" else 0)    # zero stands before the first binade
    size = np.abs(np.nan_to_num(value, nan=0, posinf=1e300, neginf=1e300))
    high = np.clip(np.searchsorted(grid, size), 1, grid.size - 1)
    to_high, to_low = grid[high] - size, size - grid[high - 1]
    pick = np.where((to_high < to_low) | (to_high == to_low) & (parity[high] % 2 == 0), high, high - 1)
    result = magnitudes[pick] + (np.signbit(value).astype(int) << (fmt.width - 1))
    return np.where(np.isnan(value), fmt.nan, result).astype(np.uint32)


EXACT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
         "fma": lambda a, b, c: a * b + c}
CASES = ([(name, fmt) for name in EXACT for fmt in TINY]
         + [(name, fmt) for name in EXACT for fmt in SMALL if name != "fma"])


@pytest.mark.parametrize("subnormals", ["gradual", "flush"])
@pytest.mark.parametrize("name, fmt", CASES)
def test_small_format_is_exact_everywhere(name, fmt, subnormals):
    """float64 holds these sums and products exactly, and more than twice the digits of the others."""
    count = {"sqrt": 1, "fma": 3}.get(name, 2)
    operands = [v.reshape(-1) for v in np.meshgrid(*[np.arange(1 << fmt.width)] * count)]
    with np.errstate(all="ignore"):
        value = EXACT[name](*(decode(v, fmt, subnormals) for v in operands))
    got = getattr(fp32, name)(*operands, fmt=fmt, subnormals=subnormals)
    np.testing.assert_array_equal(got, encode(value, fmt, subnormals))


@pytest.mark.parametrize("subnormals", ["gradual", "flush"])
@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_small_format_orders_everywhere(fmt, subnormals):
    a, b = (v.reshape(-1) for v in np.meshgrid(*[np.arange(1 << fmt.width)] * 2))
    x, y = decode(a, fmt, subnormals), decode(b, fmt, subnormals)
    relation = np.select([x < y, x == y, x > y], [1, 2, 4], 8)
    np.testing.assert_array_equal(fp32.compare(a, b, fmt, subnormals), relation)
    for name, host in (("min", np.minimum), ("max", np.maximum)):
        want = host(x, y)
        both = (x == 0) & (y == 0)
        sign = np.signbit(x) | np.signbit(y) if name == "min" else np.signbit(x) & np.signbit(y)
        want = np.where(both, np.where(sign, -0.0, 0.0), want)
        np.testing.assert_array_equal(getattr(fp32, name)(a, b, fmt, subnormals), encode(want, fmt, subnormals))


def fraction(bits):
    return Fraction(float(np.uint32(bits).view(np.float32)))


@pytest.mark.parametrize("name", ["add", "mul", "div", "fma"])
@pytest.mark.parametrize("count", [1_000, pytest.param(300_000, marks=pytest.mark.slow)])
def test_fp32_equals_fractions(name, count):
    a, b = random_pairs(count, 21)
    c = fp32.mul(a, b) ^ np.uint32(1 << 31)
    a, b, c = (np.where(v & 0x7F800000 == 0x7F800000, v ^ np.uint32(1 << 30), v) for v in (a, b, c))
    got = fp32.fma(a, b, c) if name == "fma" else getattr(fp32, name)(a, b)
    for i in range(count):
        x, y, z = fraction(a[i]), fraction(b[i]), fraction(c[i])
        if name == "div" and y == 0:
            continue
        exact = {"add": Fraction.__add__, "mul": Fraction.__mul__, "div": Fraction.__truediv__,
                 "fma": lambda p, q, r=z: p * q + r}[name](x, y)
        want = exact_fp32(exact, "gradual")
        if exact == 0:
            assert got[i] & 0x7FFFFFFF == 0
        else:
            assert int(got[i]) == want, (a[i], b[i], c[i])


def softfloat_fma(a, b, c):
    make, out = softfloatpy.Float32.from_bytes, np.empty(a.size, np.uint32)
    for i, (x, y, z) in enumerate(zip(a, b, c, strict=True)):
        out[i] = int.from_bytes(softfloatpy.f32_mul_add(*(make(int(v).to_bytes(4, "big")) for v in (x, y, z)))
                                .to_bytes(), "big")
    return canonical(out.view(np.float32))


@pytest.mark.parametrize("count", [6_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_fused_multiply_add_equals_softfloat(count):
    for start in range(0, count, 500_000):
        size = min(count, 500_000)
        a, b = random_pairs(size, start + 31)
        rng = np.random.default_rng(start)
        c = (fp32.mul(a, b) ^ np.uint32(1 << 31)) + (rng.integers(-2, 3, size) << rng.integers(0, 27, size))
        c = np.where(rng.random(size) < 0.5, c, rng.integers(0, 2 ** 32, size)).astype(np.uint32)
        np.testing.assert_array_equal(fp32.fma(a, b, c), softfloat_fma(a, b, c))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_fused_multiply_add_equals_softfloat_on_special_pairs(seed):
    """All pairs of special values as factors, with one special addend each."""
    values = specials()
    step = 5 if seed == 1 else 1
    a, b = np.repeat(values, values.size)[::step], np.tile(values, values.size)[::step]
    c = np.random.default_rng(seed).permutation(np.resize(values, a.size))
    np.testing.assert_array_equal(fp32.fma(a, b, c), softfloat_fma(a, b, c))


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_fused_multiply_add_equals_softfloat_field_by_field(step):
    a, b = (values[::step] for values in factors(9))
    c = addends(fp32.mul(a, b), 10)
    np.testing.assert_array_equal(fp32.fma(a, b, c), softfloat_fma(a, b, c))


@pytest.mark.parametrize("count", [300_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_conversions_equal_host(count):
    rng = np.random.default_rng(41)
    whole = rng.integers(-2 ** 31, 2 ** 31, count) >> rng.integers(0, 32, count)
    np.testing.assert_array_equal(fp32.from_int32(whole), whole.astype(np.float32).view(np.uint32))
    a = np.concatenate([specials(), random_pairs(count, 42)[0]])
    a = np.concatenate([a, a & np.uint32(0x8FFFFFFF) | np.uint32(0x40000000)])
    with np.errstate(all="ignore"):
        value = a.view(np.float32).astype(np.float64)
        for rounding, host in (("rne", np.rint), ("truncate", np.trunc)):
            want = np.nan_to_num(np.clip(host(value), -2.0 ** 31, 2.0 ** 31 - 1), nan=0).astype(np.int64)
            np.testing.assert_array_equal(fp32.to_int32(a, rounding=rounding).view(np.int32), want)


@pytest.mark.parametrize("count", [300_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_bf16_is_the_upper_half_rounded(count):
    a = np.concatenate([specials(), random_pairs(count, 43)[0]]).astype(np.int64)
    nan = a & 0x7FFFFFFF > 0x7F800000
    want = np.where(nan, BF16.nan, a + 0x7FFF + (a >> 16 & 1) >> 16)
    np.testing.assert_array_equal(fp32.to_bf16(a), want)
    back = np.arange(1 << 16)
    wide = np.where(back & 0x7FFF > 0x7F80, 0x7FC00000, back << 16)
    np.testing.assert_array_equal(fp32.from_bf16(back), wide)


def test_signs_and_selection():
    a = np.concatenate([specials(), random_pairs(10_000, 44)[0]])
    nan = a & 0x7FFFFFFF > 0x7F800000
    np.testing.assert_array_equal(fp32.neg(a), np.where(nan, 0x7FC00000, a ^ 0x80000000))
    np.testing.assert_array_equal(fp32.abs(a), np.where(nan, 0x7FC00000, a & 0x7FFFFFFF))
    subnormal = a & 0x7F800000 == 0
    np.testing.assert_array_equal(fp32.neg(a, subnormals="flush")[subnormal], (a ^ 0x80000000)[subnormal] & 0x80000000)
    np.testing.assert_array_equal(fp32.select(a & 1, a, ~a), np.where(a & 1, a, ~a))


def test_scaled_integers_follow_the_sum_rule():
    """value * 2^exponent, judged after rounding, +0 below the smallest normal number."""
    for value, exponent, want in ((0, 5, 0), (-1, 0, 0xBF800000), (1, 128, 0x7F800000), (-1, 128, 0xFF800000),
                                  (1, -126, 0x00800000), (-1, -127, 0), ((1 << 25) - 1, -151, 0x00800000),
                                  ((1 << 24) - 1, -150, 0), (-(1 << 24) - 1, 0, 0xCB800000),
                                  ((1 << 24) + 3, 0, 0x4B800002)):
        got = fp32.from_int(value, exponent, subnormals="flush", underflow="positive")
        assert int(got) == want, (value, exponent)
    assert int(fp32.from_int(3, 0, True)) == 0x7FC00000
