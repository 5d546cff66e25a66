"""Compiled products with accumulation ``aligned``: docs/numerics.md, section 5."""

import ctypes

import numpy as np

from ..blocks import Blocks, per_line
from . import kernels

#: What int32 holds.
_INT32 = 2 ** 31 - 2


def product(x: Blocks, w: Blocks, guard: int) -> np.ndarray:
    """(M, N) float32 of x (M, K) and w (K, N); sums may be anything where a block is invalid.

    Block sums are exact in float32 up to 24 bits, else in float64. The accumulator is int32 where no running sum can
    leave it, else int64: the width that the hardware has does not matter, since it never overflows.
    """
    (m, k), n, side = x.mantissa.shape, w.mantissa.shape[1], x.fmt.terms
    a, b = (np.ascontiguousarray(blocks.mantissa, np.float32) for blocks in (x, w))
    a_last = np.ascontiguousarray(per_line(x, x.exponent, 0) - x.fmt.magnitude, np.int32)
    b_last = per_line(w, w.exponent, 1) - w.fmt.magnitude
    lanes = -(-n // 32) * 32                           # whole panels
    padded = np.zeros((b_last.shape[0], lanes), np.int32)
    padded[:, :n] = b_last
    largest = side * x.fmt.limit * w.fmt.limit
    wide = largest >> 24 > 0 or (largest << guard) * a_last.shape[1] > _INT32
    y, flush = np.empty((m, n), np.float32), kernels.FLUSH[x.fmt.subnormals]

    def part(low, high):
        kernels.loaded().hbfp_aligned(
            a.ctypes.data + 4 * low * k, a_last.ctypes.data + 4 * low * a_last.shape[1], high - low, k, side,
            b.ctypes.data, padded.ctypes.data, n, lanes, guard, wide, y.ctypes.data + 4 * low * n,
            ctypes.addressof(flush))
    if y.size and k:
        kernels.split(m, m * n * k * 0.05, part, 8)
    else:
        y[:] = 0
    return y
