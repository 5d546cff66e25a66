"""The functions of :mod:`golden.functions` as numba kernels, for sweeps over all 2^32 inputs.

One scalar kernel a function, written from the same page (``docs/design/03-functions.md``) in another style: branches
instead of selections. ``tests/golden/test_functions.py`` holds the two to equal bits.
"""

import numba as nb
import numpy as np

from hbfp.checks import check_choice
from hbfp.golden.number.arrays import patterns
from hbfp.golden.spec.tables import EXP2, FUNCTIONS, LN2, LOG2E, LOG_SPLIT, MAIN, coefficients, first_row

# The kernels spell the formats out; a format that changes must change them too.
assert (EXP2.index, EXP2.position, EXP2.fraction, EXP2.used) == (6, 22, (28, 28, 26), (22, 13))
assert (MAIN.index, MAIN.position, MAIN.fraction, MAIN.used) == (4, 20, (28, 28, 27, 26), (20, 17, 12))

_EXP2 = np.array(coefficients("exp2"), dtype=np.int64)
_MAIN = np.array(coefficients("main"), dtype=np.int64)
_RECIP, _RSQRT, _LOG, _TANH, _LOGISTIC, _MILLS = (
    first_row(name) for name in ("recip", "rsqrt", "log", "tanh", "logistic", "mills"))
_NAN, _INF, _SIGN, _ONE, _HALF = 0x7FC00000, 0x7F800000, 0x80000000, 0x3F800000, 0x3F000000
_jit = nb.njit(inline="always", cache=True)


@_jit
def _main(row, word):
    """Value of MAIN, 28 fraction bits."""
    segment = (row << 4) + (word >> 20)
    t = (word & 0xFFFFF) - 0x80000
    value = _MAIN[segment, 2] + (_MAIN[segment, 3] * (t >> 8) >> 11)
    value = _MAIN[segment, 1] + (value * (t >> 3) >> 16)
    return _MAIN[segment, 0] + (value * t >> 20)


@_jit
def _exp2(argument, exponent):
    """abs(argument) 2^exponent log2(e) with 28 fraction bits; ``argument`` has 34."""
    product = argument * (LOG2E >> 17) + (argument * (LOG2E & 0x1FFFF) >> 17)
    return product >> min(23 - exponent, 63)


@_jit
def _power(f):
    """2^f, 28 fraction bits each."""
    segment = f >> 22
    t = (f & 0x3FFFFF) - 0x200000
    value = _EXP2[segment, 1] + (_EXP2[segment, 2] * (t >> 9) >> 11)
    return _EXP2[segment, 0] + (value * t >> 22)


@_jit
def _pack(number, exponent):
    """Bits of number 2^(exponent - 30), 2^24 <= number < 2^38."""
    lead = 24
    while number >> (lead + 1):
        lead += 1
    rounded = (number >> (lead - 24)) + 1 >> 1
    biased = exponent + 97 + lead + (rounded >> 24)
    if biased < 1:
        return 0
    if biased >= 255:
        return _INF
    return biased << 23 | rounded & 0x7FFFFF


@_jit
def _binade(exponent, significand):
    """Address and position of a magnitude below 32: row << 24 | word."""
    if exponent < 127:
        return significand >> min(126 - exponent, 31)
    return (exponent - 126) << 24 | (significand & 0x7FFFFF) << 1


@_jit
def _exp(sign, exponent, significand):
    if exponent == 0:
        return _ONE
    if exponent > 133:
        return 0 if sign else _INF
    y = _exp2(significand << 11, exponent - 127)
    if sign:
        y = -y
    return _pack(_power(y & 0xFFFFFFF) << 2, y >> 28)


@_jit
def _log(sign, exponent, significand):
    if exponent == 0:
        return _SIGN | _INF
    if sign:
        return _NAN
    if exponent == 255:
        return _INF
    word = (significand & 0x7FFFFF) << 1
    k, u, upper = exponent - 127, word, False
    if word >> 20 >= LOG_SPLIT:
        k, u, upper = k + 1, 0x1000000 - word >> 1, True
    value = _main(_LOG, word)
    if k == 0:
        if u == 0:
            return 0
        lead = 0
        while not u >> 23:
            u <<= 1
            lead += 1
        bits = _pack(u * value >> 22, -lead)
        return _SIGN | bits if upper else bits
    near = u * value >> 22
    total = k * LN2 + (-near if upper else near)
    return _SIGN | _pack(-total, 0) if total < 0 else _pack(total, 0)


@_jit
def _recip(sign, exponent, significand):
    if exponent == 0:
        return sign << 31 | _INF
    if exponent == 255:
        return sign << 31
    half = significand >> 22 & 1
    return sign << 31 | _pack(_main(_RECIP + half, (significand & 0x3FFFFF) << 2) << 2, 126 - exponent)


@_jit
def _rsqrt(sign, exponent, significand):
    if exponent == 0:
        return sign << 31 | _INF
    if sign:
        return _NAN
    if exponent == 255:
        return 0
    half, odd = significand >> 22 & 1, 1 - (exponent & 1)
    value = _main(_RSQRT + 2 * odd + half, (significand & 0x3FFFFF) << 2)
    return _pack(value << 2, -(exponent - 127 - odd >> 1) - 1)


@_jit
def _logistic(exponent, significand):
    """1 / (1 + e^-a)."""
    if exponent > 131:
        return _main(_LOGISTIC + 5, 0xFFFFFF)
    address = _binade(exponent, significand)
    return _main(_LOGISTIC + (address >> 24), address & 0xFFFFFF)


@_jit
def _tanh(sign, exponent, significand):
    if exponent == 0:
        return sign << 31
    if exponent == 255:
        return sign << 31 | _ONE
    if exponent < 127:
        value = _main(_TANH, significand >> min(126 - exponent, 31))
        return sign << 31 | _pack(significand * value >> 21, exponent - 127)
    y = -_exp2(significand << 11, min(exponent - 126, 6))
    tail = _logistic(exponent + 1, significand) * _power(y & 0xFFFFFFF) >> 28
    return sign << 31 | _pack((1 << 28) - (tail >> min(-(y >> 28) - 1, 63)) << 2, 0)


@_jit
def _sigmoid(sign, exponent, significand):
    if exponent == 0:
        return _HALF
    if exponent > 133:
        return 0 if sign else _ONE
    value = _logistic(exponent, significand)
    if not sign:
        return _pack(value << 2, 0)
    y = -_exp2(significand << 11, exponent - 127)
    return _pack((value * _power(y & 0xFFFFFFF) >> 28) << 2, y >> 28)


@_jit
def _silu(sign, exponent, significand):
    if exponent == 0:
        return sign << 31
    if exponent > 133 and sign:
        return _SIGN
    if exponent == 255:
        return _INF
    value = _logistic(exponent, significand)
    if not sign:
        return _pack(significand * value >> 21, exponent - 127)
    y = -_exp2(significand << 11, exponent - 127)
    return _SIGN | _pack(significand * (value * _power(y & 0xFFFFFFF) >> 28) >> 21, exponent - 127 + (y >> 28))


@_jit
def _normal(exponent, significand):
    """B E with 28 fraction bits, and its exponent, of a = abs(x) < 16."""
    if exponent < 128:
        address = _binade(exponent, significand)
        row, binade, word = address >> 24, address >> 24, address & 0xFFFFFF
    else:
        binade = exponent - 126
        row, word = 2 * binade - 2 + (significand >> 22 & 1), (significand & 0x3FFFFF) << 2
    y = -_exp2(significand * significand >> 12, 2 * (exponent - 127) - 1)
    return _main(_MILLS + row, word) * _power(y & 0xFFFFFFF) >> 28, (y >> 28) - binade - 1


@_jit
def _gelu(sign, exponent, significand):
    if exponent == 0:
        return sign << 31
    if exponent > 130:
        return _SIGN if sign else exponent << 23 | significand & 0x7FFFFF
    tail, k = _normal(exponent, significand)
    if sign:
        return _SIGN | _pack(significand * tail >> 21, exponent - 127 + k)
    return _pack(significand * ((1 << 28) - (tail >> min(-k, 63))) >> 21, exponent - 127)


@_jit
def _normcdf(sign, exponent, significand):
    if exponent == 0:
        return _HALF
    if exponent > 130:
        return 0 if sign else _ONE
    tail, k = _normal(exponent, significand)
    if sign:
        return _pack(tail << 2, k)
    return _pack((1 << 28) - (tail >> min(-k, 63)) << 2, 0)


def _loop(kernel):
    """Kernel over an array of bit patterns."""
    @nb.njit(nogil=True)
    def loop(x, result):
        for i in range(x.size):
            bits = np.int64(x[i])
            exponent, fraction = bits >> 23 & 255, bits & 0x7FFFFF
            if exponent == 255 and fraction:
                result[i] = _NAN
            else:
                result[i] = kernel(bits >> 31, exponent, fraction | 0x800000)
    return loop


_KERNELS = {"exp": _exp, "log": _log, "recip": _recip, "rsqrt": _rsqrt, "tanh": _tanh, "sigmoid": _sigmoid,
            "gelu": _gelu, "silu": _silu, "normcdf": _normcdf}
_LOOPS = {name: _loop(_KERNELS[name]) for name in FUNCTIONS}


def evaluate(name: str, x: np.ndarray) -> np.ndarray:
    """Function ``name`` of ``uint32`` bit patterns; the same bits as :func:`golden.functions.evaluate`.

    The first call of a function compiles it (about a second).
    """
    check_choice("Function", name, _LOOPS)
    x = np.ascontiguousarray(patterns(x).astype(np.uint32, copy=False))
    result = np.empty_like(x)
    _LOOPS[name](x.ravel(), result.reshape(-1))
    return result
