"""Digits of wide mantissas: every mantissa of every pair of widths, and the sums that they make."""

import numpy as np
import pytest

from golden.core.digits import check_widths, joined, split
from golden.matmul import mantissa_dot

#: All widths of an array and of mantissas that are two of its digits.
PAIRS = [(narrow, wide) for narrow in range(2, 17) for wide in range(narrow + 1, min(2 * narrow - 1, 16) + 1)]


@pytest.mark.parametrize("narrow, wide", PAIRS)
def test_every_mantissa_is_two_digits_of_the_array(narrow, wide):
    limit, most = 2 ** (wide - 1) - 1, 2 ** (narrow - 1) - 1
    mantissa = np.arange(-limit, limit + 1)
    high, low = split(mantissa, narrow, wide)
    assert np.array_equal(high * 2 ** (narrow - 1) + low, mantissa)
    assert np.array_equal(joined(high, low, narrow), mantissa)
    for digit in (high, low):
        assert -most <= digit.min() and digit.max() <= most
    # Bits of the two's complement, but where that would be the code that is no mantissa.
    plain = (mantissa >> narrow - 1) != -2 ** (narrow - 1)
    assert np.array_equal(low[plain], mantissa[plain] & 2 ** (narrow - 1) - 1)
    assert plain.all() == (wide < 2 * narrow - 1)


def test_digits_word_for_word():
    assert [tuple(map(int, split(value, 4, 6))) for value in (31, 8, 7, 0, -1, -8, -9, -31)] == [
        (3, 7), (1, 0), (0, 7), (0, 0), (-1, 7), (-1, 0), (-2, 7), (-4, 1)]
    assert [tuple(map(int, split(value, 4, 7))) for value in (63, -56, -57, -63)] == [
        (7, 7), (-7, 0), (-7, -1), (-7, -7)]


def digit_dot(a, b, narrow, a_wide, b_wide):
    """``mantissa_dot`` as an array of ``narrow`` bits forms it; widths of mantissas are 0 where they are as narrow."""
    a_digits, b_digits = ([(part, 0)] if not wide else
                          list(zip(split(part, narrow, wide), (narrow - 1, 0), strict=True))
                          for part, wide in ((a, a_wide), (b, b_wide)))
    return sum(mantissa_dot(x, y) << p + q for x, p in a_digits for y, q in b_digits)


@pytest.mark.parametrize("narrow, wide", [(2, 3), (4, 6), (4, 7), (8, 12), (8, 15), (9, 16)])
def test_shifted_sums_are_the_sum_of_the_wide_core(narrow, wide):
    rng, limit, most = np.random.default_rng([narrow, wide]), 2 ** (wide - 1) - 1, 2 ** (narrow - 1) - 1
    wides, narrows = (rng.integers(-edge, edge + 1, (2, 40, 33)) for edge in (limit, most))
    wides[:, 0], narrows[:, 0] = [[-limit], [limit]], [[most], [-most]]    # the largest sums
    for a, a_wide in ((wides[0], wide), (narrows[0], 0)):
        for b, b_wide in ((wides[1], wide), (narrows[1], 0)):
            assert np.array_equal(digit_dot(a, b, narrow, a_wide, b_wide), mantissa_dot(a, b))


@pytest.mark.parametrize("narrow, wide, message", [
    (4, 4, "Wide mantissa must be 5 to 7 bits, not 4"), (4, 8, "Wide mantissa must be 5 to 7 bits, not 8"),
    (1, 2, "Mantissa width must be 2 to 16 bits, not 1")])
def test_widths_that_are_no_pair(narrow, wide, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        check_widths(narrow, wide)


def test_mantissas_out_of_range():
    with pytest.raises(ValueError, match=r"^Mantissas must be -31 to 31, not -32 to 5$"):
        split([-32, 5], 4, 6)
