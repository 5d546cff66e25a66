"""Products of numbers that share no exponents, compiled, or the platform's; :mod:`golden.floats` calls them."""

import numpy as np
from numba import njit

from ..number.to_fp32 import FLUSHED_BELOW

_NORMAL = np.float32(2.0 ** -126)
_ZERO = np.float32(0)


@njit
def _flushed(value):
    """An FP32 result, +0 below 2^-126."""
    return _ZERO if abs(value) < _NORMAL else value


@njit
def _rounded(wide):
    """float64 to FP32, rounded once, +0 below 2^-126 after that."""
    return _ZERO if abs(wide) < FLUSHED_BELOW else np.float32(wide)


@njit
def _fp32(x, w, rows, result):
    """Each product and each sum rounded."""
    terms, columns = w.shape
    psum = np.empty(columns, np.float32)
    for m in range(len(x)):
        acc = result[m]
        acc[:] = 0
        for top in range(0, terms, rows):
            psum[:] = 0
            for k in range(top, min(top + rows, terms)):
                a = np.float64(_flushed(x[m, k]))
                for n in range(columns):
                    psum[n] = _flushed(psum[n] + _rounded(a * np.float64(_flushed(w[k, n]))))
            for n in range(columns):
                acc[n] = _flushed(acc[n] + psum[n])


@njit
def _halves(x, w, rows, result):
    """Exact products, each added with one rounding: the sum is rounded to odd first, in float64."""
    terms, columns = w.shape
    psum, one = np.empty(columns, np.float32), np.empty(1, np.float64)
    bits = one.view(np.int64)
    for m in range(len(x)):
        acc = result[m]
        acc[:] = 0
        for top in range(0, terms, rows):
            psum[:] = 0
            for k in range(top, min(top + rows, terms)):
                a = np.float64(x[m, k])
                for n in range(columns):
                    wide, product = np.float64(psum[n]), a * np.float64(w[k, n])
                    one[0] = y = wide + product
                    part = y - wide
                    error = (wide - (y - part)) + (product - part)
                    if error != 0 and bits[0] & 1 == 0 and np.isfinite(y):
                        bits[0] += 1 if (error > 0) == (y > 0) else -1
                    psum[n] = _rounded(one[0])
            for n in range(columns):
                acc[n] = _flushed(acc[n] + psum[n])


def _int8(x, w, rows, result):
    """Integers, whose sums of less than 2^53 are exact in float64 in any order; they are rounded once."""
    result[:] = x.astype(np.float64) @ w.astype(np.float64)


#: Arithmetic -> its product: x (M, K), w (K, N), rows of the array, and where (M, N) of float32 goes.
STEPS = {"fp32": _fp32, "bf16": _halves, "fp16": _halves, "int8": _int8}
