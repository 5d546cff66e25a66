"""Compiled loops for large FP32 arrays: the same bits as :mod:`golden.fp32`, one scalar at a time.

Integer arithmetic only. :mod:`golden.fp32` calls these for large arrays;
``tests/golden/fast/test_fp32.py`` holds the two equal. The first call of an operation compiles it,
a few seconds; Numba caches the result, beside this file unless it is told otherwise.
"""

from collections.abc import Callable

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import ArrayLike

NAN = 0x7FC00000
INF = 0x7F800000
#: Lowest exponent of a significand's last bit.
LAST = -149


@intrinsic
def _leading_zeros(context, x):
    """Leading zeros of an int64: one machine instruction."""
    def generate(context, builder, signature, operands):
        return builder.ctlz(operands[0], cgutils.false_bit)

    return types.int64(types.int64), generate


@njit(inline="always")
def _length(x):
    """Bits of a non-negative integer."""
    return 64 - _leading_zeros(np.int64(x))


@njit(inline="always")
def _significand(x, flush):
    """Significand of a finite number as an integer; its last bit counts 2^_exponent(x)."""
    field, fraction = x >> 23 & 255, x & 0x7FFFFF
    if field:
        return fraction | 0x800000
    return 0 if flush else fraction


@njit(inline="always")
def _exponent(x):
    return max(x >> 23 & 255, 1) - 150


@njit(inline="always")
def _round(sign, value, exponent, sticky, flush, positive):
    """Nearest even of (value + sticky * epsilon) * 2^exponent, packed."""
    drop = _length(value) - 24
    if not flush and drop < LAST - exponent:
        drop = LAST - exponent
    if drop > 61:
        drop = 61
    exponent += drop
    if drop > 0:
        kept = value >> drop
        lost, half = value - (kept << drop), 1 << (drop - 1)
        if lost > half or lost == half and (sticky or kept & 1):
            kept += 1
    else:
        kept = value << -drop
    if kept >> 24:
        kept >>= 1
        exponent += 1
    field = exponent + 150 if kept >> 23 else 0
    if field <= 0 and flush:
        return 0 if positive else sign << 31
    if field >= 255:
        return sign << 31 | INF
    return sign << 31 | field << 23 | kept & 0x7FFFFF


@njit(inline="always")
def _sum(sign_x, x, exponent_x, sign_y, y, exponent_y, flush, positive):
    """Sum of two scaled integers below 2^57, rounded once."""
    if x == 0:
        if y == 0:
            return (sign_x & sign_y if not positive else 0) << 31
        return _round(sign_y, y, exponent_y, False, flush, positive)
    if y == 0:
        return _round(sign_x, x, exponent_x, False, flush, positive)
    move = 58 - _length(x)
    x, exponent_x = x << move, exponent_x - move
    move = 58 - _length(y)
    y, exponent_y = y << move, exponent_y - move
    if exponent_x < exponent_y:
        sign_x, x, exponent_x, sign_y, y, exponent_y = sign_y, y, exponent_y, sign_x, x, exponent_x
    distance = min(exponent_x - exponent_y, 62)
    aligned = y >> distance
    sticky = aligned << distance != y
    if sign_x == sign_y:
        total = x + aligned
    else:
        total = x - aligned - sticky
        if total < 0:
            sign_x, total = 1 - sign_x, -total
        if total == 0:
            return 0
    return _round(sign_x, total, exponent_x, sticky, flush, positive)


@njit(inline="always")
def _special(x):
    return x & INF == INF


@njit(inline="always")
def _nan(x):
    return x & 0x7FFFFFFF > INF


@njit(inline="always")
def _zero(x, flush):
    return x & (INF if flush else 0x7FFFFFFF) == 0


@njit(cache=True)
def add(a: np.ndarray, b: np.ndarray, out: np.ndarray, flush: bool, positive: bool) -> None:
    """out = a + b."""
    for i in range(a.size):
        x, y = np.int64(a[i]), np.int64(b[i])
        if _special(x) or _special(y):
            if _nan(x) or _nan(y) or _special(x) and _special(y) and x != y:
                out[i] = NAN
            else:
                out[i] = x if _special(x) else y
        else:
            out[i] = _sum(x >> 31, _significand(x, flush), _exponent(x),
                          y >> 31, _significand(y, flush), _exponent(y), flush, positive)


@njit(cache=True)
def mul(a: np.ndarray, b: np.ndarray, out: np.ndarray, flush: bool, positive: bool) -> None:
    """out = a * b."""
    for i in range(a.size):
        x, y = np.int64(a[i]), np.int64(b[i])
        sign = x >> 31 ^ y >> 31
        if _special(x) or _special(y):
            if _nan(x) or _nan(y) or _zero(x, flush) or _zero(y, flush):
                out[i] = NAN
            else:
                out[i] = sign << 31 | INF
        else:
            out[i] = _round(sign, _significand(x, flush) * _significand(y, flush),
                            _exponent(x) + _exponent(y), False, flush, positive)


@njit(cache=True)
def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray, out: np.ndarray, flush: bool, positive: bool) -> None:
    """out = a * b + c, rounded once."""
    for i in range(a.size):
        x, y, z = np.int64(a[i]), np.int64(b[i]), np.int64(c[i])
        sign = x >> 31 ^ y >> 31
        if _special(x) or _special(y) or _special(z):
            infinite = _special(x) or _special(y)
            if (_nan(x) or _nan(y) or _nan(z) or infinite and (_zero(x, flush) or _zero(y, flush))
                    or infinite and _special(z) and sign != z >> 31):
                out[i] = NAN
            else:
                out[i] = sign << 31 | INF if infinite else z
        else:
            out[i] = _sum(sign, _significand(x, flush) * _significand(y, flush), _exponent(x) + _exponent(y),
                          z >> 31, _significand(z, flush), _exponent(z), flush, positive)


def run(loop: Callable[..., None], operands: tuple[ArrayLike, ...], *modes: bool) -> np.ndarray:
    """Apply ``loop`` to patterns that broadcast; ``uint32`` of their common shape."""
    operands = np.broadcast_arrays(*operands)
    out = np.empty(operands[0].shape, np.uint32)
    # Numba compiles again for read-only arrays, and two processes that store different variants of one loop at the
    # same time can mix them up: so there is one variant of each.
    flat = [np.require(v, np.uint32, ("C", "W")).reshape(-1) for v in operands]
    loop(*flat, out.reshape(-1), *modes)
    return out
