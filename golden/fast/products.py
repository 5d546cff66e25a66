"""Products of converted matrices, each in the quickest arithmetic that gives its block sums exactly."""

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from hbfp.format import HBFPFormat

from . import kernels, scratch

_KEEP = kernels.flush_of("gradual")


def converted(x: np.ndarray, w: np.ndarray, fmt: HBFPFormat, w_fmt: HBFPFormat, sums: str = "fp32") -> np.ndarray:
    """``x @ w`` of float32 (M, K) and (K, N), both converted first."""
    a, x_span = kernels.encoded(np.ascontiguousarray(x), fmt)
    b, w_span = kernels.encoded(np.ascontiguousarray(w), w_fmt, axis=0)
    return multiply(a, b, fmt, w_fmt, x_span, w_span, sums=sums)


def multiply(a: np.ndarray, b: np.ndarray, a_fmt: HBFPFormat, b_fmt: HBFPFormat, a_span: kernels.Span,
             b_span: kernels.Span, *, sums: str = "fp32", **options: Any) -> np.ndarray:
    """:func:`product` in float32 where that is exact, else in integers where they hold the sums, else in float64.

    ``sums`` are what :func:`golden.fast.kernels.adds`. Where ``rows`` and ``blocks`` say where elements of ``a`` lie,
    ``a.flat`` is its blocks behind each other.
    """
    given = a_fmt, b_fmt, a_span, b_span
    return next(run for serves, run in _WAYS if serves(*given))(a, b, *given, sums=sums, **options)


def exact(x_fmt: HBFPFormat, w_fmt: HBFPFormat, x_span: kernels.Span, w_span: kernels.Span) -> bool:
    """Whether FP32 holds every partial sum of a block exactly, in any order, and no sum can underflow.

    The sums are integers times 2^(low + low); they need 24 bits at most and a sign, and normal numbers.
    """
    return x_fmt.sum_width(other=w_fmt) <= 25 and in_range(x_fmt, x_span, w_span)


def in_range(x_fmt: HBFPFormat, x_span: kernels.Span, w_span: kernels.Span) -> bool:
    """Whether no sum of a block can lie below 2^-126 or above 2^127."""
    reach = x_span.high + w_span.high + x_fmt.terms.bit_length()
    least = min(x_span.low + w_span.low, x_span.low, w_span.low)
    return least >= -126 and max(reach, x_span.high, w_span.high) <= 127


def paired(x_fmt: HBFPFormat, w_fmt: HBFPFormat, x_span: kernels.Span, w_span: kernels.Span) -> bool:
    """Whether int32 holds every partial sum of a block, or of w's mantissas in two parts, and FP32's range the sums."""
    parts = min(w_fmt.limit, 128)                      # see passes() of pairs.h
    return (x_fmt.terms * x_fmt.limit * parts < 2 ** 31 and not x_span.invalid and not w_span.invalid
            and in_range(x_fmt, x_span, w_span))


@lru_cache(4096)
def even_blocks(k: int, side: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Where blocks of ``side`` terms start along K, ``stride`` numbers from term to term; and their terms."""
    first = np.arange(0, k, side, dtype=np.int64)
    return first * stride, np.minimum(side, k - first)


@lru_cache(4096)
def even_rows(m: int, stride: int) -> np.ndarray:
    """Where ``m`` rows start, ``stride`` numbers from one to the next."""
    return np.arange(m, dtype=np.int64) * stride


def product(a: np.ndarray, b: np.ndarray, side: int, *, rows: np.ndarray | None = None,
            blocks: np.ndarray | None = None, out: np.ndarray | None = None,
            flush: kernels.Flush = _KEEP, wide: bool = False) -> np.ndarray:
    """Block-ordered product of converted values: ``acc = acc + (exact dot product of a block)``, blocks ascending.

    Parameters
    ----------
    a : ndarray of float32
        (M, K) with any strides; or, with ``rows`` and ``blocks``, anything contiguous.
    b : ndarray of float32
        (K, N) with any strides.
    side : int
        Terms of a block; the last may be shorter.
    rows, blocks : ndarray of int64, optional
        Element (m, k) of block j is ``a.flat[rows[m] + blocks[j] + k]``: convolutions without copies.
    out : ndarray of float32, optional
        (M, N), its last axis contiguous.
    flush : kernels.Flush
        How sums are cut.
    wide : bool
        Take block sums in float64, rounded once. Without it they must be exact in float32 (:func:`exact`).

    Returns
    -------
    ndarray of float32
        (M, N); NaN is canonical.
    """
    k, n = b.shape
    if wide:
        a = a.astype(np.float64) if rows is None else np.asarray(a, np.float64, order="C")
    if rows is None:
        row_stride, stride = (step // a.itemsize for step in a.strides)
        rows = even_rows(a.shape[0], row_stride)
    else:
        stride = 1
    first, terms = even_blocks(k, side, stride)
    blocks = first if blocks is None else blocks
    m = len(rows)
    y = scratch.empty((m, n)) if out is None else out
    if not y.size:
        return y
    if not k:
        y[:] = 0
        return y
    run, ldy = kernels.loaded().hbfp_wide_product if wide else kernels.loaded().hbfp_product, y.strides[0] // 4
    bk, bn = (step // 4 for step in b.strides)

    def part(m_low, m_high, n_low, n_high):
        work = np.empty(k * (64 if n_high - n_low > 32 else 32), a.dtype)          # one panel of b
        run(a.ctypes.data, rows.ctypes.data + 8 * m_low, m_high - m_low, blocks.ctypes.data, terms.ctypes.data,
            len(terms), stride, b.ctypes.data + 4 * n_low * bn, bk, bn, n_high - n_low,
            y.ctypes.data + 4 * (m_low * ldy + n_low), ldy, work.ctypes.data,
            ctypes.addressof(flush))
    by_parts(part, m, k, n)
    return y


def by_parts(part: Callable[[int, int, int, int], None], m: int, k: int, n: int) -> None:
    """Call ``part(first row, last, first column, last)`` for each thread's share of a product (m, k, n)."""
    if n >= 128 * kernels.threads():                           # by columns, so that each panel is packed once
        kernels.split(n, m * k * n * kernels.MULTIPLICATION, lambda low, high: part(0, m, low, high), 64)
    else:
        kernels.split(m, m * k * n * kernels.MULTIPLICATION, lambda low, high: part(low, high, 0, n), 48)


def _single_product(a, b, a_fmt, b_fmt, a_span, b_span, *, sums, **options):
    return product(a, b, a_fmt.terms, flush=kernels.flush_of(a_fmt.subnormals, sums), **options)


def _pair_product(a, b, a_fmt, b_fmt, a_span, b_span, *, sums, rows=None, blocks=None, out=None):
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
    y = scratch.empty((len(rows), n)) if out is None else out
    if not y.size or not k:
        y[:] = 0
        return y
    ldy, (bk, bn) = y.strides[0] // 4, (step // 4 for step in b.strides)
    given = (kernels.format_of(a_fmt), kernels.format_of(b_fmt), a_span, b_span,
             kernels.flush_of(a_fmt.subnormals, sums))

    def part(m_low, m_high, n_low, n_high):
        kernels.loaded().hbfp_pair_product(
            a.ctypes.data, length, rows.ctypes.data + 8 * m_low, m_high - m_low, blocks.ctypes.data, terms.ctypes.data,
            len(terms), stride, b.ctypes.data + 4 * n_low * bn, bk, bn, n_high - n_low,
            y.ctypes.data + 4 * (m_low * ldy + n_low), ldy, a_fmt.terms, *map(ctypes.addressof, given))
    by_parts(part, len(rows), k, n)
    return y


def _wide_product(a, b, a_fmt, b_fmt, a_span, b_span, *, sums, **options):
    small = a_span.low + b_span.low < -126             # else no sum is: all are multiples of the last bits in use
    flush = kernels.flush_of(a_fmt.subnormals if small else "gradual", sums)
    return product(a, b, a_fmt.terms, flush=flush, wide=True, **options)


#: Whether an arithmetic gives the sums exactly, and its product; the quickest first.
_WAYS = ((exact, _single_product), (paired, _pair_product), (lambda *given: True, _wide_product))


# --- One operand, many products -----------------------------------------------------------------


def packed(b: np.ndarray) -> np.ndarray:
    """``b`` (K, N), any strides, as :func:`packed_product` takes it: for an operand that serves many products."""
    k, n = b.shape
    y = np.empty(k * (n + 64), np.float32)
    kernels.loaded().hbfp_pack(b.ctypes.data, b.strides[0] // 4, b.strides[1] // 4, k, n, y.ctypes.data)
    return y


def packed_product(a: np.ndarray, b: np.ndarray, side: int, n: int) -> np.ndarray:
    """:func:`product` of ``a`` (M, K) and what :func:`packed` made of (K, n)."""
    m, k = a.shape
    row_stride, stride = (step // 4 for step in a.strides)
    first, terms = even_blocks(k, side, stride)
    y = np.zeros((m, n), np.float32)

    def part(low, high):
        rows = even_rows(high - low, row_stride)
        kernels.loaded().hbfp_packed_product(
            a.ctypes.data + 4 * low * row_stride, rows.ctypes.data, high - low, first.ctypes.data, terms.ctypes.data,
            len(terms), stride, b.ctypes.data, n, y.ctypes.data + 4 * low * n, n)
    if y.size and k:
        kernels.split(m, m * k * n * kernels.MULTIPLICATION, part, 48)
    return y
