"""Quick paths of the golden model: kernels.cpp, compiled by :mod:`golden.fast.compiled`.

They give the bits that :mod:`golden.bfp` and :mod:`golden.matmul` define, at every level of machine code: plain C++,
no library, no threads of its own. Without them everything still runs, on the NumPy definitions.
"""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from hbfp.checks import check_range
from hbfp.design import FLOAT_SUMS
from hbfp.format import ROUNDINGS, HBFPFormat
from hbfp.values import shown

from ..number.blocks import block_sides
from ..number.to_fp32 import FLUSHED_BELOW
from . import compiled, scratch

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
    _fields_ = [("sum", ctypes.c_double), ("total", ctypes.c_double), ("cut", ctypes.c_int64)]


#: For each rule of subnormals and kind of sums, the magnitudes below which block sums and running sums become +0, and
#: the bits of FP32's fraction that sums do not have.
_FLUSH = {(subnormals, sums): Flush(*below, FLOAT_SUMS["fp32"] - fraction) for sums, fraction in FLOAT_SUMS.items()
          for subnormals, below in (("flush", (float(FLUSHED_BELOW), 2.0 ** -126)), ("gradual", (0, 0)))}


def flush_of(subnormals: str, sums: str = "fp32") -> Flush:
    """How sums of a kind that :func:`adds` are cut."""
    return _FLUSH[subnormals, sums]


def adds(sums: str, formats: Iterable[HBFPFormat]) -> bool:
    """Whether the kernels have sums of a kind, of operands in these formats: floats, narrow ones without subnormals."""
    return sums == "fp32" or sums in FLOAT_SUMS and all(fmt.subnormals == "flush" for fmt in formats)


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
                                   *[_PTR] * 5]),
            ("hbfp_pack", [_PTR, *[_I64] * 4, _PTR]),
            ("hbfp_packed_product", [_PTR, _PTR, _I64, _PTR, _PTR, _I64, _I64, _PTR, _I64, _PTR, _I64]),
            ("hbfp_aligned_pack", [_PTR, _I64, _I64, _I32, _PTR]),
            ("hbfp_aligned", [_PTR, _PTR, _I64, _PTR, _PTR, _I64, _I64, *[_PTR] * 3, _I64, *[_PTR] * 3, _I64, _I64,
                              _I32, _I64, _PTR, _PTR]),
            ("hbfp_aligned_stack", [_I64, _PTR, *[_I64] * 3, _PTR, *[_I64] * 6, *[_PTR] * 3, _I64, _I32, _I64,
                                    *[_PTR] * 2]),
            ("hbfp_aligned_patches", [_I64, _PTR, _I64, _I32, _PTR, *[_I64] * 4, *[_PTR] * 3, _I64, _I32, _I64,
                                      *[_PTR] * 2]),
            ("hbfp_lay", [_PTR, _PTR, _PTR]),
            ("hbfp_copies", [_PTR, _I64, _PTR, _I64, *[_PTR] * 3, *[_I64] * 5, *[_PTR] * 2]),
            ("hbfp_patches", [_PTR, _PTR, _I64, _I64, *[_PTR] * 3, _I64, _I64, _PTR]),
            ("hbfp_patches_turned", [_PTR, _PTR, _I64, _I64, *[_PTR] * 4]),
            ("hbfp_planes", [_PTR, _PTR, _I64, _PTR, *[_I64] * 3, *[_PTR] * 4, _I64, _I64, _PTR, _I64, _I64, _PTR,
                             _PTR]),
            ("hbfp_grouped_turned", [_PTR, _PTR, _I64, _I64, *[_PTR] * 4, _I64, _PTR, _I64, _PTR, _PTR]),
            ("hbfp_depthwise", [_PTR, _I32, _PTR, _I64, _I64, *[_PTR] * 3, _I64, _I64, _PTR]),
            ("hbfp_depthwise_aligned", [_PTR, _I32, _PTR, _I64, *[_PTR] * 3, _I64, _I64, _PTR, _PTR]),
            ("hbfp_columns_drawn", [_PTR, _PTR, *[_I64] * 3, *[_PTR] * 3]),
            ("hbfp_leap", [_PTR, _I64, _I64, _PTR]),
            ("hbfp_stack", [_I64, _PTR, _I64, _I64, _I64, _PTR, *[_I64] * 6, *[_PTR] * 8]),
            ("hbfp_stack_drawn", [_I64, _PTR, _I64, _I64, _PTR]),
            ("hbfp_stack_patches", [_I64, _PTR, _I64, _I32, _PTR, *[_I64] * 4, *[_PTR] * 8]),
            ("hbfp_chain", [_PTR, *[_I64] * 3]),
            ("hbfp_alike_sgd", [_PTR, *[_I64] * 3, *[_PTR] * 3]),
            ("hbfp_alike_moments", [_PTR, *[_I64] * 3, *[_PTR] * 4]),
            ("hbfp_alike_adam", [_I64, _I64, *[_PTR] * 4]),
            ("hbfp_alike_normalise", [_I64, _PTR, _I32, *[_PTR] * 4]),
            ("hbfp_alike_gradients", [_I64, _PTR, _I32, *[_PTR] * 8]),
            ("hbfp_emulate", [_PTR, _PTR, _PTR, *[_I64] * 3, _I32]),
            ("hbfp_number_elements", [_PTR, _PTR, _I64, _PTR]),
            ("hbfp_number_blocks", [_PTR, _PTR, *[_I64] * 3, _PTR]),
            ("hbfp_elements", [_PTR, _I64, _PTR, _PTR, _I64, _I64]),
            ("hbfp_ascending", [_PTR, _I64, _I64, _PTR]),
            ("hbfp_row_sums", [_PTR, _I64, _I64, _I64, _PTR]),
            ("hbfp_product", [_PTR, _PTR, _I64, _PTR, _PTR, _I64, _I64, _PTR, *[_I64] * 3, _PTR, _I64, _PTR, _PTR])):
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, None
    return loaded


def loaded() -> Any:
    """The compiled kernels, for a caller that knows by :func:`library` that there are any."""
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
    """A format as ``struct Format`` of convert.h."""
    low, high = fmt.exponent_range
    return Format(fmt.magnitude, low, high, ("rne", "truncate", "stochastic").index(fmt.rounding), fmt.noise_bits,
                   fmt.subnormals == "gradual")


assert set(ROUNDINGS) == {"rne", "truncate", "stochastic"}


def encoded(x: np.ndarray, fmt: HBFPFormat, noise: np.ndarray | None = None, *, axis: int = -1,
            out: np.ndarray | None = None, wide: int = 0) -> tuple[np.ndarray, Span]:
    """``decode(encode(x, fmt, noise, axis=axis))`` of a matrix, and its :class:`Span`.

    Parameters
    ----------
    x : ndarray of float32
        (rows, columns); its last axis contiguous.
    fmt, noise, axis
        As of :func:`golden.bfp.encode`; noise as contiguous int32.
    out : ndarray of float32, optional
        Where the result goes; may be ``x``.
    wide : int
        Columns of a block, if others than ``fmt`` has.

    Returns
    -------
    tuple of (ndarray of float32, Span)
    """
    rows, columns = x.shape
    y = scratch.empty((rows, columns)) if out is None else out
    if not x.size:
        return y, Span.empty()
    high, own = block_sides(fmt, axis)
    form, run, wide = format_of(fmt), loaded().hbfp_encode, wide or own
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
    """``x.T`` of a float32 matrix with contiguous rows, as a contiguous copy."""
    rows, columns = x.shape
    y = scratch.empty((columns, rows))
    loaded().hbfp_turn(x.ctypes.data, x.strides[0] // 4, y.ctypes.data, rows, rows, columns)
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
