"""Quick paths of the golden model: kernels.cpp, compiled by :mod:`golden.fast.compiled`.

They give the bits that :mod:`golden.bfp` and :mod:`golden.matmul` define, at every level of machine code: plain C++,
no library, no threads of its own. Without them everything still runs, on the NumPy definitions.
"""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from hbfp.fields import check_range
from hbfp.format import ROUNDINGS, HBFPFormat
from hbfp.values import shown

from ..blocks import block_sides
from ..to_fp32 import FLUSHED_BELOW
from . import compiled

#: Nanoseconds of work, roughly, below which one thread does it alone: handing over costs about 50000.
_ALONE = 200_000
#: Nanoseconds, roughly, of one thread for an element's conversion and for a multiplication.
ELEMENT, MULTIPLICATION = 0.5, 0.01
_I32, _I64, _PTR = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p


class Format(ctypes.Structure):
    """``struct Format`` of convert.h."""
    _fields_ = [(name, ctypes.c_int32) for name in
                ("magnitude", "lowest", "highest", "rounding", "noise_bits", "gradual")]


class Flush(ctypes.Structure):
    """``struct Flush`` of product.h."""
    _fields_ = [("sum", ctypes.c_double), ("total", ctypes.c_double)]


#: For each rule of subnormals, the magnitudes below which block sums and running sums become +0.
FLUSH = {"flush": Flush(float(FLUSHED_BELOW), 2.0 ** -126), "gradual": Flush(0, 0)}


class Span(ctypes.Structure):
    """What a conversion met: ``low`` and ``high``, powers of two of the last bits in use and above the
    largest element; ``invalid``, whether a block held Inf or NaN."""
    _fields_ = [(name, ctypes.c_int32) for name in ("low", "high", "invalid")]

    @classmethod
    def empty(cls) -> Self:
        """A span of no elements."""
        return cls(1 << 20, -(1 << 20), 0)

    def join(self, other: Self) -> Self:
        """The span of both."""
        return type(self)(min(self.low, other.low), max(self.high, other.high), self.invalid | other.invalid)


@cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels; None without a C++ compiler, with ``HBFP_KERNELS=0``, or if they cannot be made or loaded.

    The last is said in one line on standard error.
    """
    which = compiled.level()
    try:
        path = None if which is None else compiled.file(which)
        return None if path is None else load(path)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"hbfp: no compiled kernels, NumPy computes instead, more slowly ({shown(error, 300)})", file=sys.stderr)
        return None


def load(path: Path) -> ctypes.CDLL:
    """A library that :mod:`golden.fast.compiled` has made."""
    loaded = ctypes.CDLL(str(path))
    for name, arguments in (
            ("hbfp_encode", [_PTR, _I64, _PTR, _I64, _PTR, _I64, _I64, _I64, _I64, _I64, _PTR, _PTR]),
            ("hbfp_encode_drawn", [_PTR, _I64, _PTR, *[_I64] * 5, *[_PTR] * 3]),
            ("hbfp_draw", [_PTR, _PTR, _I64, _I32]),
            ("hbfp_turn", [_PTR, _I64, _PTR, *[_I64] * 3]),
            ("hbfp_mantissas", [*[_PTR] * 5, *[_I64] * 6, _PTR]),
            ("hbfp_float_mantissas", [*[_PTR] * 5, *[_I64] * 6, _PTR]),
            ("hbfp_row_mantissas", [_PTR, _PTR, *[_I64] * 3, *[_PTR] * 4]),
            ("hbfp_decode", [*[_PTR] * 4, *[_I64] * 6, _I32]),
            ("hbfp_wide_product", [_PTR, _PTR, _I64, _PTR, _PTR, _I64, _I64, _PTR, *[_I64] * 3, _PTR, _I64, _PTR,
                                   _PTR]),
            ("hbfp_pair_product", [_PTR, _I64, _PTR, _I64, _PTR, _PTR, _I64, _I64, _PTR, *[_I64] * 3, _PTR, _I64, _I64,
                                   *[_PTR] * 4]),
            ("hbfp_pack", [_PTR, *[_I64] * 4, _PTR]),
            ("hbfp_packed_product", [_PTR, _PTR, _I64, _PTR, _PTR, _I64, _I64, _PTR, _I64, _PTR, _I64]),
            ("hbfp_aligned", [_PTR, _PTR, _I64, _PTR, _PTR, _I64, _I64, *[_PTR] * 3, _I64, _PTR, _PTR, _I64, _I64, _I32,
                              _I32, _PTR, _PTR]),
            ("hbfp_lay", [_PTR, _PTR, _PTR]),
            ("hbfp_patches", [_PTR, _PTR, _I64, _I64, *[_PTR] * 3, _I64, _I64, _PTR]),
            ("hbfp_patches_turned", [_PTR, _PTR, _I64, _I64, *[_PTR] * 4]),
            ("hbfp_planes", [_PTR, _PTR, _I64, _I64, _PTR, _I64, _I64, _PTR, _PTR, _I64, _I64, _PTR, _PTR]),
            ("hbfp_grouped_turned", [_PTR, _PTR, _I64, _PTR, _PTR, _I64, _PTR, _I64, _PTR]),
            ("hbfp_depthwise", [_PTR, _PTR, _I64, _PTR, _PTR, _I64, _I64, _PTR]),
            ("hbfp_depthwise_turned", [_PTR, _PTR, _I64, *[_PTR] * 3]),
            ("hbfp_stack", [_I64, _PTR, _I64, _I64, _I64, _PTR, *[_I64] * 6, *[_PTR] * 8]),
            ("hbfp_stack_patches", [_I64, _PTR, _I64, _I32, _PTR, *[_I64] * 4, *[_PTR] * 8]),
            ("hbfp_elements", [_PTR, _I64, _PTR, _PTR, _I64, _I64]),
            ("hbfp_row_sums", [_PTR, _I64, _I64, _I64, _PTR]),
            ("hbfp_product", [_PTR, _PTR, _I64, _PTR, _PTR, _I64, _I64, _PTR, _I64, _I64, _I64, _PTR, _I64, _PTR])):
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, None
    return loaded


def loaded() -> Any:
    """The compiled kernels of a caller that has asked whether there are any."""
    return library()


# --- Threads ------------------------------------------------------------------------------------

_threads = None
_inside = threading.local()


def threads() -> int:
    """Threads that a large conversion or product uses."""
    return _threads or len(os.sched_getaffinity(0))


def set_threads(count: int | None) -> None:
    """Use ``count`` threads; None means one per processor. Results do not depend on it."""
    global _threads
    if count is not None:
        check_range("Threads", count, 1, 1024)
    _threads = count


@cache
def _pool(pid, count):
    return ThreadPoolExecutor(count)


def split(count: int, work: float, call: Callable[[int, int], Any], grain: int = 1) -> list[Any]:
    """Call ``call(first, last)`` on parts of ``range(count)``, cut at multiples of ``grain``; list the results.

    ``work`` is an estimate of the whole in nanoseconds.
    """
    pieces = -(-count // grain)
    parts = min(threads(), pieces) if work > _ALONE and not getattr(_inside, "part", False) else 1
    if parts <= 1:
        return [call(0, count)]
    cuts = [min(pieces * i // parts * grain, count) for i in range(parts + 1)]
    cuts[-1] = count

    def marked(low, high):
        _inside.part = True                            # a part does not split further: the pool could starve
        return call(low, high)
    # Keyed by process: a pool does not survive a fork.
    return list(_pool(os.getpid(), parts).map(marked, cuts[:-1], cuts[1:]))


# --- Conversion ---------------------------------------------------------------------------------


@lru_cache(1024)
def format_of(fmt: HBFPFormat) -> Format:
    """``struct Format`` of convert.h."""
    low, high = fmt.exponent_range
    return Format(fmt.magnitude, low, high, ("rne", "truncate", "stochastic").index(fmt.rounding), fmt.noise_bits,
                   fmt.subnormals == "gradual")


assert set(ROUNDINGS) == {"rne", "truncate", "stochastic"}


def encoded(x: np.ndarray, fmt: HBFPFormat, noise: np.ndarray | None = None, *, axis: int = -1,
            out: np.ndarray | None = None) -> tuple[np.ndarray, Span]:
    """``decode(encode(x, fmt, noise, axis=axis))`` of a matrix, and its :class:`Span`.

    Parameters
    ----------
    x : ndarray of float32
        (rows, columns); its last axis contiguous.
    fmt, noise, axis
        As of :func:`golden.bfp.encode`; noise as contiguous int32.
    out : ndarray of float32, optional
        Where the result goes; may be ``x``.

    Returns
    -------
    tuple of (ndarray of float32, Span)
    """
    rows, columns = x.shape
    y = np.empty((rows, columns), np.float32) if out is None else out
    if not x.size:
        return y, Span.empty()
    high, wide = block_sides(fmt, axis)
    form, run = format_of(fmt), loaded().hbfp_encode
    source, target, dice = x.ctypes.data, y.ctypes.data, 0 if noise is None else noise.ctypes.data
    ldx, ldy = x.strides[0], y.strides[0]

    def part(first, last):
        span = Span.empty()
        run(source + first * ldx, ldx // 4, target + first * ldy, ldy // 4, dice and dice + 4 * first * columns,
            columns, last - first, columns, high, wide, ctypes.addressof(form), ctypes.addressof(span))
        return span
    spans = split(rows, x.size * ELEMENT, part, high)
    for span in spans[1:]:
        spans[0] = spans[0].join(span)
    return y, spans[0]


def turned(x: np.ndarray) -> np.ndarray:
    """``x.T`` of a float32 matrix with contiguous rows, contiguous."""
    rows, columns = x.shape
    y = np.empty((columns, rows), np.float32)
    loaded().hbfp_turn(x.ctypes.data, x.strides[0] // 4, y.ctypes.data, rows, rows, columns)
    return y


def exact(x_fmt: HBFPFormat, w_fmt: HBFPFormat, x_span: Span, w_span: Span) -> bool:
    """Whether FP32 holds every partial sum of a block exactly, in any order, and no sum can underflow.

    The sums are integers times 2^(low + low); they need 24 bits at most and a sign, and normal numbers.
    """
    return x_fmt.sum_width(x_fmt.terms, w_fmt) <= 25 and in_range(x_fmt, x_span, w_span)


def in_range(x_fmt: HBFPFormat, x_span: Span, w_span: Span) -> bool:
    """Whether no sum of a block can lie below 2^-126 or above 2^127."""
    reach = x_span.high + w_span.high + x_fmt.terms.bit_length()
    least = min(x_span.low + w_span.low, x_span.low, w_span.low)
    return least >= -126 and max(reach, x_span.high, w_span.high) <= 127


# --- Products -----------------------------------------------------------------------------------


@lru_cache(4096)
def even_blocks(k: int, side: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Where blocks of ``side`` terms start along K, and their terms."""
    first = np.arange(0, k, side, dtype=np.int64)
    return first * stride, np.minimum(side, k - first)


@lru_cache(4096)
def even_rows(m: int, stride: int) -> np.ndarray:
    """Where rows start."""
    return np.arange(m, dtype=np.int64) * stride


def product(a: np.ndarray, b: np.ndarray, side: int, *, rows: np.ndarray | None = None,
            blocks: np.ndarray | None = None, out: np.ndarray | None = None,
            wide: Flush | None = None) -> np.ndarray:
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
    wide : Flush, optional
        Take block sums in float64, rounded once to float32, and flush as it says. Without it block sums must be exact
        in float32 (:func:`exact`).

    Returns
    -------
    ndarray of float32
        (M, N); NaN is canonical.
    """
    k, n = b.shape
    if wide is not None:
        a = a.astype(np.float64) if rows is None else np.asarray(a, np.float64, order="C")
    if rows is None:
        row_stride, stride = (step // a.itemsize for step in a.strides)
        rows = even_rows(a.shape[0], row_stride)
    else:
        stride = 1
    first, terms = even_blocks(k, side, stride)
    blocks = first if blocks is None else blocks
    m = len(rows)
    y = np.empty((m, n), np.float32) if out is None else out
    if not y.size:
        return y
    if not k:
        y[:] = 0
        return y
    run, ldy = loaded().hbfp_product if wide is None else loaded().hbfp_wide_product, y.strides[0] // 4
    last = () if wide is None else (ctypes.addressof(wide),)
    bk, bn = (step // 4 for step in b.strides)

    def part(m_low, m_high, n_low, n_high):
        work = np.empty(k * (64 if n_high - n_low > 32 else 32), a.dtype)          # one panel of b
        run(a.ctypes.data, rows.ctypes.data + 8 * m_low, m_high - m_low, blocks.ctypes.data, terms.ctypes.data,
            len(terms), stride, b.ctypes.data + 4 * n_low * bn, bk, bn, n_high - n_low,
            y.ctypes.data + 4 * (m_low * ldy + n_low), ldy, work.ctypes.data, *last)
    by_parts(part, m, k, n)
    return y


def by_parts(part: Callable[[int, int, int, int], None], m: int, k: int, n: int) -> None:
    """``part(first row, last, first column, last)`` of a product (m, k, n), for each thread one."""
    if n >= 128 * threads():                           # by columns, so that each panel is packed once
        split(n, m * k * n * MULTIPLICATION, lambda low, high: part(0, m, low, high), 64)
    else:
        split(m, m * k * n * MULTIPLICATION, lambda low, high: part(low, high, 0, n), 48)


def packed(b: np.ndarray) -> np.ndarray:
    """``b`` (K, N), any strides, as :func:`packed_product` takes it: for an operand that serves many products."""
    k, n = b.shape
    y = np.empty(k * (n + 64), np.float32)
    loaded().hbfp_pack(b.ctypes.data, b.strides[0] // 4, b.strides[1] // 4, k, n, y.ctypes.data)
    return y


def packed_product(a: np.ndarray, b: np.ndarray, side: int, n: int) -> np.ndarray:
    """:func:`product` of ``a`` (M, K) and what :func:`packed` made of (K, n)."""
    m, k = a.shape
    row_stride, stride = (step // 4 for step in a.strides)
    first, terms = even_blocks(k, side, stride)
    y = np.zeros((m, n), np.float32)

    def part(low, high):
        rows = even_rows(high - low, row_stride)
        loaded().hbfp_packed_product(
            a.ctypes.data + 4 * low * row_stride, rows.ctypes.data, high - low, first.ctypes.data, terms.ctypes.data,
            len(terms), stride, b.ctypes.data, n, y.ctypes.data + 4 * low * n, n)
    if y.size and k:
        split(m, m * k * n * MULTIPLICATION, part, 48)
    return y


# --- Sums -----------------------------------------------------------------------------------------


def row_sums(x: np.ndarray) -> np.ndarray:
    """Sums of (models, rows, columns) over the rows, ascending: (models, columns), the same on every machine."""
    y = np.zeros((x.shape[0], x.shape[2]), np.float32)
    if library() is None:
        for row in x.swapaxes(0, 1):
            y += row
    elif x.size:
        x = np.ascontiguousarray(x)
        loaded().hbfp_row_sums(x.ctypes.data, *x.shape, y.ctypes.data)
    return y
