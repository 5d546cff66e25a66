"""Compiled products with the patches of a convolution, which are converted a strip at a time and never stored."""

import ctypes
import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import reduce
from typing import Self

import numpy as np

from hbfp.format import HBFPFormat

from ..number.blocks import block_sides
from . import kernels, lanes, scratch


class Values(ctypes.Structure):
    """``struct Values`` of convolve.h: the other operand (rows, n), converted."""
    _fields_ = [("data", ctypes.c_void_p), ("ld", ctypes.c_int64), ("n", ctypes.c_int64), ("format", ctypes.c_void_p),
                ("span", ctypes.c_void_p)]

    @classmethod
    def of(cls, values: np.ndarray, fmt: HBFPFormat, span: kernels.Span) -> Self:
        """From what :func:`golden.fast.kernels.encoded` gives."""
        values, form = np.ascontiguousarray(values), kernels.format_of(fmt)
        made = cls(values.ctypes.data, values.shape[1], values.shape[1], ctypes.addressof(form), ctypes.addressof(span))
        made.keep = values, form, span
        return made


class Patches(ctypes.Structure):
    """``struct Patches`` of convolve.h: where the patches of a contiguous tensor lie.

    Parameters
    ----------
    x : ndarray of float32
        The tensor.
    rows, segments : ndarray of int64
        Patch i is the runs ``x.flat[rows[i] + segments[s]:][:length]`` behind each other.
    length : int
        Elements of a run.
    """
    _fields_ = [("x", ctypes.c_void_p), ("row", ctypes.c_void_p), ("segment", ctypes.c_void_p),
                ("pixels", ctypes.c_int64), ("segments", ctypes.c_int64), ("length", ctypes.c_int64)]

    def __init__(self, x: np.ndarray, rows: np.ndarray, segments: np.ndarray, length: int) -> None:
        super().__init__(x.ctypes.data, rows.ctypes.data, segments.ctypes.data, len(rows), len(segments), length)
        self.keep = x, rows, segments

    @property
    def columns(self) -> int:
        """Elements of a patch."""
        return self.segments * self.length


def _drawing(stream):
    """Context that gives the address of the stream's generators, or 0."""
    return nullcontext(0) if stream is None else lanes.Running(stream)


def laid(x: np.ndarray, sides: Sequence[int], corner: Sequence[int]) -> np.ndarray:
    """``x`` (N, C, H, W) or (N, C, D, H, W) channels last, with other ``sides``, from ``corner`` on; zeros around."""
    y = scratch.empty((x.shape[0], *sides, x.shape[1]))
    lay(x, y.transpose(0, -1, *range(1, y.ndim - 1)), corner)
    return y


def planes(x: np.ndarray, sides: Sequence[int], corner: Sequence[int]) -> np.ndarray:
    """:func:`laid` with planes, one for each channel; what follows the last may be read for 16 numbers more."""
    n, c = x.shape[:2]
    flat = scratch.empty((n * c * math.prod(sides) + 16,))
    flat[-16:] = 0
    y = flat[:-16].reshape(n, c, *sides)
    lay(x, y, corner)
    return y


def lay(x: np.ndarray, y: np.ndarray, corner: Sequence[int]) -> None:
    """``x`` into ``y``, both (N, C, H, W) or (N, C, D, H, W) in any order in memory; zeros around."""
    numbers = places(x.shape, [stride // 4 for stride in x.strides], y, corner)
    kernels.loaded().hbfp_lay(x.ctypes.data, numbers.ctypes.data, y.ctypes.data)


def places(shape: Sequence[int], strides: Sequence[int], y: np.ndarray, corner: Sequence[int]) -> np.ndarray:
    """What ``hbfp_lay`` has to know of images or volumes of a shape and strides, in numbers, and of what they go into,
    ``y`` with channels second."""
    (n, c, *sides), (by_n, by_c, *steps) = shape, strides
    (to_n, to_c, *to), own = (stride // 4 for stride in y.strides), y.shape[2:]
    if len(sides) == 2:                                # one image deep
        sides, steps, to, own, corner = [1, *sides], [0, *steps], [0, *to], (1, *own), (0, *corner)
    return np.array([by_n, by_c, *steps, n, c, *sides, to_n, to_c, *to, *own, *corner], np.int64)


def copies(x: np.ndarray, starts: np.ndarray, sides: np.ndarray, steps: np.ndarray, length: int,
           fmt: HBFPFormat | None = None) -> tuple[np.ndarray, kernels.Span]:
    """Copies of parts of contiguous planes ``x`` (N, C, ...), in lines, and what their conversion met.

    Parameters
    ----------
    x : ndarray of float32
        (N, C, H, W), or with depth.
    starts : ndarray of int64
        Where in a plane each copy begins.
    sides, steps : ndarray of int64
        (3,): how many elements a copy has along depth, rows and columns, and how many numbers apart in a plane.
    length : int
        Elements of a line of the result, whole blocks; lines lie behind each other.
    fmt : HBFPFormat, optional
        Converts the lines, without noise.

    Returns
    -------
    tuple of (ndarray of float32, Span)
        (lines, length).
    """
    count, size = x.shape[0] * x.shape[1], math.prod(x.shape[2:])
    y = scratch.empty((len(starts) * count * math.prod(sides.tolist()) // length, length))
    form = fmt and kernels.format_of(fmt)

    def part(first, last):
        span = kernels.Span.empty()
        kernels.loaded().hbfp_copies(
            x.ctypes.data, size, starts.ctypes.data, len(starts), sides.ctypes.data, steps.ctypes.data, y.ctypes.data,
            count, first, last, length, fmt.terms if fmt else 0, form and ctypes.addressof(form),
            ctypes.addressof(span))
        return span
    return y, reduce(kernels.Span.join, kernels.split(count, y.size * kernels.ELEMENT, part))


def product(patches: Patches, fmt: HBFPFormat, other: Values, stream: lanes.Generators | None = None,
            sums: str = "fp32") -> np.ndarray:
    """q(patches) times ``other`` (columns, n), blocks along the columns or tiles: (pixels, n) float32."""
    y = scratch.empty((patches.pixels, other.n))
    form, flush, (high, wide) = kernels.format_of(fmt), kernels.flush_of(fmt.subnormals, sums), block_sides(fmt, -1)
    with _drawing(stream) as running:
        def part(first, last):
            kernels.loaded().hbfp_patches(
                ctypes.addressof(patches), ctypes.addressof(form), high, wide, running,
                ctypes.addressof(other), y.ctypes.data, first, last, ctypes.addressof(flush))
        if stream is None:
            kernels.split(patches.pixels, patches.pixels * patches.columns * (1 + 0.01 * other.n), part, high)
        else:
            part(0, patches.pixels)                    # the generators run through all
    return y


def turned_product(patches: Patches, fmt: HBFPFormat, other: Values, stream: lanes.Generators | None = None,
                   sums: str = "fp32") -> np.ndarray:
    """q(patches)^T times ``other`` (pixels, n), blocks along the pixels or tiles: (columns, n) float32.

    With a ``stream`` blocks along the pixels draw column by column.
    """
    y = scratch.empty((patches.columns, other.n))
    form, flush, (high, wide) = kernels.format_of(fmt), kernels.flush_of(fmt.subnormals, sums), block_sides(fmt, 0)
    with _drawing(stream) as running:
        kernels.loaded().hbfp_patches_turned(
            ctypes.addressof(patches), ctypes.addressof(form), high, wide, running, ctypes.addressof(other),
            y.ctypes.data, ctypes.addressof(flush))
    return y

