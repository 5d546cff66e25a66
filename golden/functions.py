"""FP32 functions on bit patterns, each defined by an integer algorithm: what the RTL must give, bit for bit.

Every function takes and gives ``uint32`` arrays of IEEE binary32 patterns. Subnormal inputs count as zero of their
sign, results below 2^-126 after rounding become zero of their sign, NaN is 0x7FC00000. Only integer operations are
used. :mod:`golden.fast.functions` computes the same with numba.

One datapath serves all::

    result = A * G [+ k ln 2],   G = B | E 2^k | B E 2^k | 1 - B E 2^k

A is 1, the significand of x or, for log, u; B comes from the table MAIN, E = 2^f from the table EXP2.
Ranges, error budget and measured worst errors: ``docs/design/03-functions.md``.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hbfp.checks import check_choice
from hbfp.golden.spec.tables import (
    EXP2,
    EXPONENT_BITS,
    FINAL_BITS,
    FUNCTIONS,
    LN2,
    LOG2E,
    LOG2E_BITS,
    LOG_SPLIT,
    MAIN,
    VALUE_BITS,
    coefficients,
    first_row,
)

from .number.arrays import patterns
from .spec.tables import TableFormat

NAN, INF, SIGN = 0x7FC00000, 0x7F800000, 0x80000000
ONE = 1 << 23            # significand 1.0
SQUARE_BITS = 34         # fraction bits of the argument of exp2, before the product with log2(e)
TOP = 6                  # largest exponent of an argument of exp2: |x| < 2^(TOP + 1)
WHOLE, PART = (1 << VALUE_BITS), (1 << EXPONENT_BITS) - 1


def horner(coefficients: Sequence[np.ndarray], t: np.ndarray, form: TableFormat) -> np.ndarray:
    """Fixed-point value of a segment's polynomial.

    Every step keeps the fraction bits of the coefficient that it adds: the product is floored.

    Parameters
    ----------
    coefficients : sequence of int64 arrays
        Constant first, ``form.fraction`` fraction bits.
    t : int64 array
        Position in the segment, two's complement; tau = t / 2^position.
    form : TableFormat

    Returns
    -------
    int64 array
        Value with ``form.fraction[0]`` fraction bits.
    """
    value = coefficients[-1]
    for i in range(form.degree - 1, -1, -1):
        used = form.used[i]
        value = coefficients[i] + (value * (t >> (form.position - used))
                                   >> (used + form.fraction[i + 1] - form.fraction[i]))
    return value


def _lookup(name, form, row, word):
    """Value of table ``name`` at ``word`` / 2^form.word of ``row``."""
    table = np.array(coefficients(name), dtype=np.int64)
    segment = table[(row << form.index) + (word >> form.position)]
    t = (word & ((1 << form.position) - 1)) - (1 << (form.position - 1))
    return horner(np.moveaxis(segment, -1, 0), t, form)


def _binade(exponent, significand):
    """Row (0 for [0, 1), r for [2^(r-1), 2^r)) and 24-bit word of a magnitude."""
    below = exponent < 127
    row = np.where(below, 0, exponent - 126)
    word = np.where(below, significand >> np.clip(126 - exponent, 0, 31), (significand - ONE) << 1)
    return row, word


def _exp2(argument, exponent, negative):
    """k and E = 2^f of +-argument 2^exponent log2(e) = k + f.

    ``argument`` has ``SQUARE_BITS`` fraction bits and is below 4; ``exponent`` is at most ``TOP``.
    """
    half = LOG2E_BITS // 2                       # the product has 71 bits: two parts, same floor
    product = argument * (LOG2E >> half) + (argument * (LOG2E & ((1 << half) - 1)) >> half)
    shift = SQUARE_BITS + LOG2E_BITS - half - EXPONENT_BITS - exponent
    y = product >> np.minimum(shift, 63)
    y = np.where(negative, -y, y)
    return y >> EXPONENT_BITS, _lookup("exp2", EXP2, np.int64(0), y & PART)


def _pack(number, exponent):
    """Bits of ``number`` 2^(exponent - FINAL_BITS), number >= 2^24 or 0: rounded to nearest, ties up."""
    lead = np.int64(np.bitwise_count(_smear(number))) - 1
    lead = np.maximum(lead, 24)
    rounded = (number >> (lead - 24)) + 1 >> 1
    carry = rounded >> 24
    biased = exponent + 127 + lead - FINAL_BITS + carry
    bits = (biased << 23) + (rounded & (ONE - 1))
    bits = np.where(biased >= 255, INF, bits)
    return np.where((biased < 1) | (number == 0), 0, bits)


def _smear(number):
    """All bits below the leading one set."""
    for step in (1, 2, 4, 8, 16, 32):
        number = number | number >> step
    return number


def _scale(product, fraction):
    """Product with ``fraction`` fraction bits, floored to ``FINAL_BITS``."""
    return product >> (fraction - FINAL_BITS)


class _Fields:
    """Sign, exponent field and 24-bit significand of bit patterns; classes of special values."""

    def __init__(self, x):
        x = patterns(x).astype(np.int64) & 0xFFFFFFFF
        self.sign, self.exponent, fraction = x >> 31, x >> 23 & 255, x & (ONE - 1)
        self.significand = fraction | ONE
        self.nan = (self.exponent == 255) & (fraction != 0)
        self.inf = (self.exponent == 255) & (fraction == 0)
        self.zero = self.exponent == 0
        self.negative = self.sign == 1


def _finish(x, bits, sign, cases):
    """Select the special values: ``cases`` are (condition, bits) pairs, the first that holds wins."""
    bits = bits | sign << 31
    for condition, value in reversed(cases):
        bits = np.where(condition, value, bits)
    return np.where(x.nan, NAN, bits).astype(np.uint32)


def exp(x: ArrayLike) -> np.ndarray:
    """e^x. exp(+-0) = 1, exp(-Inf) = 0, exp(Inf) = Inf."""
    x = _Fields(x)
    exponent = np.minimum(x.exponent - 127, TOP)
    k, e = _exp2(x.significand << (SQUARE_BITS - 23), exponent, x.negative)
    bits = _pack(_scale(e << 23, 23 + VALUE_BITS), k)
    large = x.exponent > 127 + TOP
    return _finish(x, bits, 0, [(large & x.negative, 0), (large, INF), (x.zero, 127 << 23)])


def log(x: ArrayLike) -> np.ndarray:
    """Natural logarithm. log(+-0) = -Inf, log(x < 0) = NaN, log(1) = +0."""
    x = _Fields(x)
    word = x.significand - ONE << 1                        # 24 fraction bits
    upper = word >> 20 >= LOG_SPLIT
    k = x.exponent - 127 + upper
    u = np.where(upper, (1 << 24) - word >> 1, word)       # |u|, 24 fraction bits
    lead = np.where(k == 0, np.maximum(24 - np.bitwise_count(_smear(u)).astype(np.int64), 0), 0)
    value = _lookup("main", MAIN, np.int64(first_row("log")), word)
    near = _scale((u << lead) * value, 24 + VALUE_BITS)
    total = np.where(k == 0, near, np.abs(k * LN2 + np.where(upper, -near, near)))
    bits = _pack(total, np.where(u == 0, 0, -lead))
    sign = np.where(k == 0, upper, k < 0) & (total != 0)
    return _finish(x, bits, sign, [(x.zero, SIGN | INF), (x.negative, NAN), (x.inf, INF)])


def _halves(significand):
    """Row 0 or 1 and 24-bit word of a significand, two rows a binade."""
    fraction = significand - ONE
    return fraction >> 22, (fraction & (ONE // 2 - 1)) << 2


def recip(x: ArrayLike) -> np.ndarray:
    """1 / x. recip(+-0) = +-Inf, recip(+-Inf) = +-0."""
    x = _Fields(x)
    row, word = _halves(x.significand)
    value = _lookup("main", MAIN, first_row("recip") + row, word)
    bits = _pack(_scale(value << 23, 23 + VALUE_BITS), 126 - x.exponent)
    return _finish(x, bits, x.sign, [(x.zero, x.sign << 31 | INF), (x.inf, x.sign << 31)])


def rsqrt(x: ArrayLike) -> np.ndarray:
    """1 / sqrt(x). rsqrt(+-0) = +-Inf, rsqrt(Inf) = 0, rsqrt(x < 0) = NaN."""
    x = _Fields(x)
    row, word = _halves(x.significand)
    odd = (x.exponent & 1) ^ 1                             # bias 127: exponent - 127 is odd
    value = _lookup("main", MAIN, first_row("rsqrt") + 2 * odd + row, word)
    bits = _pack(_scale(value << 23, 23 + VALUE_BITS), -(x.exponent - 127 - odd >> 1) - 1)
    return _finish(x, bits, 0, [(x.zero, x.sign << 31 | INF), (x.negative, NAN), (x.inf, 0)])


def _logistic(x, double):
    """B = 1 / (1 + exp(-a)), E and k of exp(-a), a = abs(x) (2 abs(x) if ``double``)."""
    exponent = x.exponent + double
    row, word = _binade(exponent, x.significand)
    over = row > 5
    row, word = np.where(over, 5, row), np.where(over, (1 << 24) - 1, word)
    value = _lookup("main", MAIN, first_row("logistic") + row, word)
    k, e = _exp2(x.significand << (SQUARE_BITS - 23), np.minimum(exponent - 127, TOP), np.True_)
    return value, value * e >> VALUE_BITS, k


def tanh(x: ArrayLike) -> np.ndarray:
    """Hyperbolic tangent; keeps the sign of zero."""
    x = _Fields(x)
    word = _binade(np.minimum(x.exponent, 126), x.significand)[1]
    small = x.significand * _lookup("main", MAIN, np.int64(first_row("tanh")), word)
    _, tail, k = _logistic(x, 1)
    large = WHOLE - (tail >> np.clip(-k - 1, 0, 63)) << 23
    below = x.exponent < 127
    bits = _pack(_scale(np.where(below, small, large), 23 + VALUE_BITS), np.where(below, x.exponent - 127, 0))
    return _finish(x, bits, x.sign, [(x.zero, x.sign << 31), (x.inf, x.sign << 31 | 127 << 23)])


def sigmoid(x: ArrayLike) -> np.ndarray:
    """1 / (1 + e^-x). sigmoid(+-0) = 1/2, sigmoid(-Inf) = 0, sigmoid(Inf) = 1."""
    x = _Fields(x)
    value, tail, k = _logistic(x, 0)
    bits = _pack(_scale(np.where(x.negative, tail, value) << 23, 23 + VALUE_BITS), np.where(x.negative, k, 0))
    large = x.exponent > 127 + TOP
    return _finish(x, bits, 0, [(large & x.negative, 0), (large, 127 << 23), (x.zero, 126 << 23)])


def silu(x: ArrayLike) -> np.ndarray:
    """x / (1 + e^-x). silu(+-0) = +-0, silu(-Inf) = -0, silu(Inf) = Inf."""
    x = _Fields(x)
    value, tail, k = _logistic(x, 0)
    bits = _pack(_scale(x.significand * np.where(x.negative, tail, value), 23 + VALUE_BITS),
                 x.exponent - 127 + np.where(x.negative, k, 0))
    large = x.exponent > 127 + TOP
    return _finish(x, bits, x.sign, [(large & x.negative, SIGN), (x.zero, x.sign << 31), (x.inf, INF)])


def _normal(x):
    """G and its exponent: Phi(x), the normal distribution function, of finite abs(x) < 16."""
    row, word = _binade(x.exponent, x.significand)
    half, fine = _halves(x.significand)
    address = np.where(row < 2, row, 2 * row - 2 + half)
    address = first_row("mills") + np.minimum(address, 7)
    value = _lookup("main", MAIN, address, np.where(row < 2, word, fine))
    square = x.significand * x.significand >> (46 - SQUARE_BITS)
    k, e = _exp2(square, np.minimum(2 * (x.exponent - 127) - 1, TOP), np.True_)
    tail, k = value * e >> VALUE_BITS, k - row - 1
    upper = WHOLE - (tail >> np.clip(-k, 0, 63))
    return np.where(x.negative, tail, upper), np.where(x.negative, k, 0)


def gelu(x: ArrayLike) -> np.ndarray:
    """x Phi(x), the definition with the error function. gelu(+-0) = +-0, gelu(-Inf) = -0, gelu(Inf) = Inf."""
    x = _Fields(x)
    value, k = _normal(x)
    bits = _pack(_scale(x.significand * value, 23 + VALUE_BITS), x.exponent - 127 + k)
    large = x.exponent > 130
    return _finish(x, bits, x.sign, [(large & x.negative, SIGN), (x.zero, x.sign << 31),
                                     (large, x.exponent << 23 | x.significand - ONE)])


def normcdf(x: ArrayLike) -> np.ndarray:
    """Phi(x), the normal distribution function. normcdf(+-0) = 1/2, normcdf(-Inf) = 0, normcdf(Inf) = 1."""
    x = _Fields(x)
    value, k = _normal(x)
    bits = _pack(_scale(value << 23, 23 + VALUE_BITS), k)
    large = x.exponent > 130
    return _finish(x, bits, 0, [(large & x.negative, 0), (large, 127 << 23), (x.zero, 126 << 23)])


def evaluate(name: str, x: ArrayLike) -> np.ndarray:
    """Apply the function called ``name``, one of :data:`golden.spec.tables.FUNCTIONS`."""
    check_choice("Function", name, FUNCTIONS)
    return globals()[name](x)
