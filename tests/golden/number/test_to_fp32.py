"""To FP32 with one rounding, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.number.to_fp32 import add_fp32, add_product_fp32, bit_length, round_fp32, to_bf16, to_fp32

from ..exact import exact_fp32


def word(x):
    return int(np.float32(x).view(np.uint32))


TOTALS = st.one_of(st.integers(-2 ** 61, 2 ** 61),
                   st.builds(lambda sig, up, by: (sig << up) + by, st.integers(2 ** 23 - 2, 2 ** 24 + 2),
                             st.integers(0, 36), st.integers(-1, 1)))
EXPONENTS = st.one_of(st.integers(-400, 300), st.integers(-190, -120), st.integers(90, 130))


@pytest.mark.parametrize("subnormals", ["flush", "gradual"])
@given(total=TOTALS, exponent=EXPONENTS)
@settings(max_examples=200)
def test_integer_rounds_once(subnormals, total, exponent):
    want = exact_fp32(total * Fraction(2) ** exponent, subnormals)
    assert word(to_fp32(total, exponent, subnormals)[()]) == want


@pytest.mark.parametrize("total, exponent, want", [
    (0, 0, 0), (1, 0, 0x3F800000), (-3, 0, 0xC0400000),
    (0x1000001, 0, 0x4B800000), (0x1000003, 0, 0x4B800002),          # ties to even, both ways
    (0xFFFFFF, 104, 0x7F7FFFFF), (0x1FFFFFF, 103, 0x7F800000),       # the largest; rounds up to 2^128
    (1, -126, 0x00800000), (0xFFFFFF, -150, 0), (0x1FFFFFF, -151, 0x00800000), (-1, -127, 0)])
def test_hand_checked_bits(total, exponent, want):
    assert word(to_fp32(total, exponent)[()]) == want


@pytest.mark.parametrize("eighths, want", [(-8, 0), (-4, 0), (-3, 0), (-2, 0x00800000), (-1, 0x00800000),
                                           (0, 0x00800000), (8, 0x00800001)])
def test_wide_float_at_the_edge_of_flushing(eighths, want):
    # 2^-126 and eighths of its last place; below it, 24 bits have half that place.
    value = np.float64(2.0) ** -126 * (1 + eighths * 2.0 ** -26)
    assert word(round_fp32(value)[()]) == exact_fp32(Fraction(float(value))) == want


def test_bit_length():
    values = [0, 1, 2, 3, 4, 2 ** 31 - 1, 2 ** 31, 2 ** 53 - 1, 2 ** 53 + 1, 2 ** 62 - 1]
    assert bit_length(values).tolist() == [v.bit_length() for v in values]


@given(st.integers(-2 ** 52, 2 ** 52), EXPONENTS)
@settings(max_examples=400)
def test_wide_float_rounds_once(total, exponent):
    assert word(round_fp32(np.ldexp(np.float64(total), exponent))[()]) == exact_fp32(total * Fraction(2) ** exponent)


FLOATS = st.one_of(st.floats(width=32, allow_nan=False, allow_infinity=False),
                   st.builds(lambda f, k: float(np.float32(np.ldexp(f, k))), st.floats(1, 2, width=32),
                             st.integers(-126, -118)))


def normal(x):
    """Operand of the flushing units."""
    return np.float32(x if abs(x) >= 2.0 ** -126 else 0)


@given(FLOATS, FLOATS)
@settings(max_examples=400)
def test_addition(a, b):
    a, b = normal(a), normal(b)
    assert word(add_fp32(a, b)[()]) == exact_fp32(Fraction(float(a)) + Fraction(float(b)))


@given(FLOATS, FLOATS, FLOATS, st.booleans())
@settings(max_examples=600)
def test_product_of_bf16_is_added_with_one_rounding(total, a, b, close):
    a, b = to_bf16(np.float32(a)), to_bf16(np.float32(b))
    if not (np.isfinite(a) and np.isfinite(b)):
        return
    product = Fraction(float(a)) * Fraction(float(b))
    if close and 2.0 ** -100 < abs(product) < 2.0 ** 100:
        total = -float(product) * (1 + 2.0 ** -20)
    total = normal(total)
    want = exact_fp32(Fraction(float(total)) + product)
    assert word(add_product_fp32(total, a, b)[()]) == want


@given(st.floats(width=32))
def test_bf16(x):
    got = to_bf16(np.float32(x))
    if x != x:
        assert word(got[()]) == 0x7FC00000
        return
    high = word(x) & 0x7FFFFFFF
    want = (round(Fraction(high, 65536)) << 16) | word(x) & 1 << 31
    assert word(got[()]) == (want if high >= 0x00800000 else 0)


def test_special_sums():
    inf = np.float32(np.inf)
    assert word(add_fp32(inf, -inf)[()]) == 0x7FC00000
    assert word(add_fp32(np.float32(-0.0), np.float32(-0.0))[()]) == 0
    assert word(add_fp32(np.float32(3e38), np.float32(3e38))[()]) == 0x7F800000
