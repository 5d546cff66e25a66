"""Compiled products of many pairs of matrices in one call, each pair in its own formats."""

import ctypes
from collections.abc import Sequence

import numpy as np

from hbfp.format import HBFPFormat

from . import kernels
from .kernels import ELEMENT, FLUSH, MULTIPLICATION, Flush, Format


class Formats:
    """Formats of the pairs, as the kernel reads them.

    Parameters
    ----------
    a, b : sequence of HBFPFormat
        One for each pair; both of a pair have blocks of equal length along K.
    """

    def __init__(self, a: Sequence[HBFPFormat], b: Sequence[HBFPFormat]) -> None:
        self.a, self.b = ((Format * len(a))(*map(kernels.format_of, side)) for side in (a, b))
        self.high = np.array([[fmt.block[0] for fmt in side] for side in (a, b)], np.int64)
        self.terms = np.array([fmt.terms for fmt in a], np.int64)
        self.flush = (Flush * len(a))(*(FLUSH[fmt.subnormals] for fmt in a))


def product(a: np.ndarray, b: np.ndarray, formats: Formats, skip: np.ndarray | None = None) -> np.ndarray:
    """``q(a[i]) q(b[i])`` for each pair i in block order: :func:`golden.fast.kernels.encoded`, then ``multiply``.

    Parameters
    ----------
    a, b : ndarray of float32
        (pairs, M, K) and (pairs, K, N); of the last two strides one is an element.
    formats : Formats
        Formats.
    skip : ndarray of bool, optional
        (pairs,): those to leave alone.

    Returns
    -------
    ndarray of float32
        (pairs, M, N); NaN is canonical. What is skipped holds anything.
    """
    (count, m, k), n = a.shape, b.shape[2]
    y = np.empty((count, m, n), np.float32)
    (a_step, am, ak), (b_step, bk, bn) = (tuple(step // 4 for step in x.strides) for x in (a, b))
    skip = np.zeros(count, bool) if skip is None else np.ascontiguousarray(skip, bool)
    fa, fb, flush = (ctypes.addressof(each) for each in (formats.a, formats.b, formats.flush))
    at_a, at_b, at_y, at_skip, at_terms = (x.ctypes.data for x in (a, b, y, skip, formats.terms))
    high_a, high_b = (side.ctypes.data for side in formats.high)
    form = ctypes.sizeof(Format)

    def part(low, last):
        kernels.loaded().hbfp_stack(
            last - low, at_a + 4 * low * a_step, a_step, am, ak, at_b + 4 * low * b_step, b_step, bk, bn, m, k, n,
            at_y + 4 * low * m * n, fa + form * low, fb + form * low, high_a + 8 * low, high_b + 8 * low,
            at_terms + 8 * low, flush + ctypes.sizeof(Flush) * low, at_skip + low)
    if not k:
        y[:] = 0
    elif y.size and not skip.all():
        kernels.split(count, count * (m * k * n * MULTIPLICATION + (m + n) * k * ELEMENT), part)
    return y
