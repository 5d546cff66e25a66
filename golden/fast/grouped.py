"""Compiled products of convolutions in groups of few channels, where a block straddles taps.

They serve rounding ``rne`` and, where each group knows where it draws from, ``stochastic``, as far as FP32 holds the
sums of blocks, and int32 all ``aligned`` sums, and say which groups have a block that is out of their range.
"""

import ctypes
import math

import numpy as np

from hbfp.format import HBFPFormat

from ..number.blocks import block_sides
from . import depthwise, kernels, lanes, scratch
from .aligned import Whole
from .depthwise import Drawing
from .patches import Patches, Values


def columns(drawing: Drawing, count: int, length: int) -> Drawing:
    """Of groups that draw for ``count`` columns each, one after the other: where each column draws.

    ``length`` are a column's numbers, padding included.
    """
    words, starts = drawing.keep
    here, found = words.copy(), np.empty((len(starts), count, lanes.MOST), np.uint32)
    for start, out in zip(starts, found, strict=True):
        here[:lanes.MOST] = start
        kernels.loaded().hbfp_leap(here.ctypes.data, count, length // int(words[4 * lanes.MOST]), out.ctypes.data)
    return Drawing.of(words, found.reshape(-1, lanes.MOST), drawing.ahead)


def encoded(x: np.ndarray, fmt: HBFPFormat, groups: int, drawing: Drawing | None = None) -> Values:
    """A contiguous matrix (K, O), converted along K; each group has its part of the columns, and draws for them."""
    n = x.shape[1] // groups
    if drawing is not None:
        return depthwise.encoded(x, fmt, columns(drawing, n, math.ceil(len(x) / fmt.terms) * fmt.terms))
    if not fmt.square or n <= fmt.terms:               # a tile has all columns of a group
        y, span = kernels.encoded(x, fmt, axis=0, wide=n if fmt.square else 1)
        return Values.of(y, fmt, span)
    y, span = np.empty(x.shape, np.float32), kernels.Span.empty()
    for i in range(0, x.shape[1], n):
        span = span.join(kernels.encoded(x[:, i:i + n], fmt, axis=0, out=y[:, i:i + n])[1])
    return Values.of(y, fmt, span)


def product(x: np.ndarray, rows: np.ndarray, width: int, offsets: np.ndarray, fmt: HBFPFormat, other: Values,
            groups: int, sums: str = "fp32", whole: Whole | None = None,
            drawing: Drawing | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Patches of planes times the weights of their group.

    Parameters
    ----------
    x : ndarray of float32
        (N, C, H, W), or with depth, as :func:`golden.fast.patches.planes` gives it.
    rows : ndarray of int64
        Where the output's rows of pixels start in flat ``x``.
    width : int
        Pixels of a row.
    offsets : ndarray of int64
        (K,): from a pixel to the elements of its patch in the first group.
    fmt : HBFPFormat
        Format of ``x``: of tiles, each group has its own.
    other : Values
        (K, O): each group has its part of the columns.
    groups : int
        Groups.
    sums : str
        What :func:`golden.fast.kernels.adds`.
    whole : Whole, optional
        Of ``other``, where sums are ``aligned``.
    drawing : Drawing, optional
        Where each group draws for its patches, pixel after pixel.

    Returns
    -------
    tuple of (ndarray of float32, ndarray of bool)
        (pixels, O), and for each group whether it holds anything because it could not be done so.
    """
    form, flush, high = kernels.format_of(fmt), kernels.flush_of(fmt.subnormals, sums), block_sides(fmt, -1)[0]
    y = scratch.empty((len(rows) * width, other.n))
    step = x.shape[1] // groups * math.prod(x.shape[2:])

    def part(first, last):
        odd = np.zeros(groups, np.uint8)
        kernels.loaded().hbfp_planes(
            x.ctypes.data, rows.ctypes.data, width, offsets.ctypes.data, len(offsets), high, fmt.terms,
            ctypes.addressof(form), ctypes.addressof(other), whole and ctypes.addressof(whole),
            drawing and ctypes.addressof(drawing), groups, step,
            y.ctypes.data, first, last, odd.ctypes.data, ctypes.addressof(flush))
        return odd
    work = y.shape[0] * len(offsets) * (groups * kernels.ELEMENT + other.n * kernels.MULTIPLICATION)
    parts = kernels.split(len(y), work, part, width if high == 1 else high)
    return y, np.bitwise_or.reduce(parts).astype(bool)


def turned_product(patches: Patches, fmt: HBFPFormat, other: Values, groups: int,
                   sums: str = "fp32", whole: Whole | None = None,
                   drawing: Drawing | None = None) -> tuple[np.ndarray, bool]:
    """Patches, turned, times ``other`` (pixels, O): the weights' gradient of each group, and whether it holds anything.

    ``patches`` has one run of all channels for each tap. The result is (taps, O / groups, C): for each channel those
    outputs that are of its group. Each group draws, column after column, from ``drawing`` on.
    """
    channels, n = patches.length, other.n // groups
    if drawing is not None:
        drawing = columns(drawing, channels // groups, math.ceil(patches.pixels / fmt.terms) * fmt.terms)
    form, flush = kernels.format_of(fmt), kernels.flush_of(fmt.subnormals, sums)
    group = np.arange(channels, dtype=np.int64) // (channels // groups) * n
    y, odd = np.empty((patches.segments, n, math.ceil(channels / 16) * 16), np.float32), ctypes.c_uint8()
    kernels.loaded().hbfp_grouped_turned(
        ctypes.addressof(patches), ctypes.addressof(form), block_sides(fmt, 0)[1], fmt.terms, ctypes.addressof(other),
        whole and ctypes.addressof(whole), drawing and ctypes.addressof(drawing), group.ctypes.data, n, y.ctypes.data,
        y.shape[2], ctypes.addressof(odd), ctypes.addressof(flush))
    return y[:, :, :channels], bool(odd.value)
