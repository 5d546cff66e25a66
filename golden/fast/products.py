"""Products of converted matrices, each in the quickest arithmetic that gives its block sums exactly."""

import ctypes
from typing import Any

import numpy as np

from hbfp.format import HBFPFormat

from .kernels import FLUSH, Span, by_parts, even_blocks, even_rows, exact, format_of, in_range, loaded, product


def multiply(a: np.ndarray, b: np.ndarray, a_fmt: HBFPFormat, b_fmt: HBFPFormat, a_span: Span, b_span: Span,
             **options: Any) -> np.ndarray:
    """:func:`product` in float32 where that is exact, else in integers where they hold the sums, else in float64.

    Where ``rows`` and ``blocks`` say where elements of ``a`` lie, ``a.flat`` is its blocks behind each other.
    """
    if exact(a_fmt, b_fmt, a_span, b_span):
        return product(a, b, a_fmt.terms, **options)
    if paired(a_fmt, b_fmt, a_span, b_span):
        return _pair_product(a, b, a_fmt, b_fmt, a_span, b_span, **options)
    small = a_span.low + b_span.low < -126             # else no sum is: all are multiples of the last bits in use
    return product(a, b, a_fmt.terms, wide=FLUSH[a_fmt.subnormals if small else "gradual"], **options)


def paired(x_fmt: HBFPFormat, w_fmt: HBFPFormat, x_span: Span, w_span: Span) -> bool:
    """Whether int32 holds every partial sum of a block, or of w's mantissas in two parts, and FP32's range the sums."""
    parts = min(w_fmt.limit, 128)                      # see passes() of pairs.h
    return (x_fmt.terms * x_fmt.limit * parts < 2 ** 31 and not x_span.invalid and not w_span.invalid
            and in_range(x_fmt, x_span, w_span))


def _pair_product(a, b, a_fmt, b_fmt, a_span, b_span, *, rows=None, blocks=None, out=None):
    """:func:`product` in integers, where :func:`paired` says that they hold the sums."""
    k, n = b.shape
    length, stride = a.size, 1
    if rows is None:
        length, row_stride = k, k
        if a.strides[0] == 4 and min(a.shape) > 1:     # turned: its words are made of two rows in memory
            row_stride, stride = 1, a.strides[1] // 4
        else:
            a = np.ascontiguousarray(a)
        rows = even_rows(a.shape[0], row_stride)
    first, terms = even_blocks(k, a_fmt.terms, stride)
    blocks = first if blocks is None else blocks
    y = np.empty((len(rows), n), np.float32) if out is None else out
    if not y.size or not k:
        y[:] = 0
        return y
    ldy, (bk, bn) = y.strides[0] // 4, (step // 4 for step in b.strides)
    forms, spans = (format_of(a_fmt), format_of(b_fmt)), (a_span, b_span)

    def part(m_low, m_high, n_low, n_high):
        loaded().hbfp_pair_product(
            a.ctypes.data, length, rows.ctypes.data + 8 * m_low, m_high - m_low, blocks.ctypes.data, terms.ctypes.data,
            len(terms), stride, b.ctypes.data + 4 * n_low * bn, bk, bn, n_high - n_low,
            y.ctypes.data + 4 * (m_low * ldy + n_low), ldy, a_fmt.terms, *map(ctypes.addressof, (*forms, *spans)))
    by_parts(part, len(rows), k, n)
    return y
