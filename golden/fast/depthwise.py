"""Compiled convolutions of each channel alone, all channels in one call."""

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, Self

import numpy as np

from hbfp.format import HBFPFormat

from ..number.blocks import block_sides
from . import aligned, kernels, lanes, scratch
from .lanes import Generators
from .patches import Patches, Values

#: Nanoseconds, roughly, of one thread for a multiplication, conversion included.
_MULTIPLICATION = 0.4


def rounds(fmt: HBFPFormat, other: HBFPFormat, guard: int = 0) -> bool:
    """Whether the kernels have blocks of ``fmt`` in tiles, with noise or with ``aligned`` sums of so many guard bits,
    times ``other``: its elements are rounded by float arithmetic, and FP32 holds sums of a block."""
    return (fmt.rounding != "truncate" and fmt.subnormals == "flush" and fmt.sum_width(other=other) <= 25
            and (fmt.rounding == "rne" or fmt.noise_bits <= 24 - fmt.magnitude)
            and aligned.at_once(fmt, other, 2 ** 40, guard) > 0)


class Drawing(ctypes.Structure):
    """``struct Drawing`` of columns.h: channels that draw from their own states, which lie in ``starts``."""
    _fields_ = [("lanes", ctypes.c_void_p), ("starts", ctypes.c_void_p), ("ahead", ctypes.c_int64)]

    @classmethod
    def of(cls, words: np.ndarray, starts: np.ndarray, ahead: int) -> Self:
        """From what :func:`golden.fast.lanes.leap` gives."""
        made = cls(words.ctypes.data, starts.ctypes.data, ahead)
        made.keep = words, starts
        return made

    def alone(self, i: int, stream: Generators) -> Generators:
        """``stream``, from where channel or group i draws on."""
        words, starts = self.keep
        stream.state[:] = starts[i, :len(stream.state)]
        lanes.leap(stream, self.ahead)
        return stream


class Matrix(NamedTuple):
    """A matrix of each channel that is converted: its format, lines, and the length of a line along K."""
    fmt: HBFPFormat
    lines: int
    length: int

    def beats(self, count: int) -> int:
        """Steps of ``count`` lanes for its noise."""
        if self.fmt.rounding != "stochastic":
            return 0
        return self.lines * -(-self.length // self.fmt.terms) * self.fmt.terms // count


def turns(stream: Generators, channels: int, matrices: Sequence[Matrix], *,
          last_first: bool = False) -> list[Drawing | None]:
    """Noise of channels that draw from one stream, one after the other, each for the same matrices in this order.

    Parameters
    ----------
    stream : Generators
        It goes on behind the last channel.
    channels : int
        How many.
    matrices : sequence of Matrix
        What a channel converts.
    last_first : bool
        Whether the last channel draws first.

    Returns
    -------
    list of Drawing or None
        For each matrix; None if it draws nothing.
    """
    beats = [matrix.beats(len(stream.state)) for matrix in matrices]
    starts, words = lanes.leap(stream, sum(beats), channels)
    starts = np.ascontiguousarray(starts[::-1]) if last_first else starts
    return [Drawing.of(words, starts, ahead) if own else None
            for own, ahead in zip(beats, accumulate(beats, initial=0), strict=False)]


def encoded(x: np.ndarray, fmt: HBFPFormat, drawing: Drawing | None) -> Values:
    """A contiguous matrix (K, channels), converted in blocks of one column, which those of a tile are here, too."""
    if drawing is None:
        fmt = replace(fmt, block=(1, fmt.terms)) if fmt.square else fmt
        y, span = kernels.encoded(x, fmt, axis=0)
        return Values.of(y, fmt, span)
    y, span, form = np.empty(x.shape, np.float32), kernels.Span.empty(), kernels.format_of(fmt)
    kernels.loaded().hbfp_columns_drawn(x.ctypes.data, y.ctypes.data, *x.shape, fmt.terms, ctypes.addressof(form),
                                        ctypes.addressof(drawing), ctypes.addressof(span))
    return Values.of(y, fmt, span)


def product(patches: Patches, fmt: HBFPFormat, other: Values, drawing: Drawing | None = None, sums: str = "fp32", *,
            turned: bool = False) -> np.ndarray:
    """Channel c of y (pixels, channels): the patches of channel c, in blocks along the taps, times ``other[:, c]``.

    ``patches`` has one run of all channels for each tap; ``other`` is (taps, channels). Turned, y is (taps, channels):
    the patches' transpose, in blocks along the pixels, times ``other`` (pixels, channels).
    """
    form, flush, high = kernels.format_of(fmt), kernels.flush_of(fmt.subnormals, sums), block_sides(fmt, -1)[0]

    def part(y, first, last):
        kernels.loaded().hbfp_depthwise(
            ctypes.addressof(patches), turned, ctypes.addressof(form), high, fmt.terms, ctypes.addressof(other),
            drawing and ctypes.addressof(drawing), y, first, last, ctypes.addressof(flush))
    return _split(patches, turned or drawing is not None, turned, high, part)[0]


def whole_product(patches: Patches, fmt: HBFPFormat, other: np.ndarray, other_fmt: HBFPFormat, guard: int, *,
                  turned: bool = False) -> tuple[np.ndarray, list[int]]:
    """The same with ``aligned`` sums, and channels that are left, whose part of y holds anything."""
    values, whole, invalid = aligned.Whole.of(other, other_fmt, fmt, guard)
    form, flush = kernels.format_of(fmt), kernels.flush_of(fmt.subnormals)

    def part(y, first, last):
        left = np.zeros(patches.length, np.uint8)
        kernels.loaded().hbfp_depthwise_aligned(
            ctypes.addressof(patches), turned, ctypes.addressof(form), fmt.terms, ctypes.addressof(values),
            ctypes.addressof(whole), y, first, last, ctypes.addressof(flush), left.ctypes.data)
        return left
    y, left = _split(patches, turned, turned, 1, part)
    return y, np.bitwise_or.reduce([invalid, *left]).nonzero()[0].tolist()


def _split(patches, alone, turned, high, part):
    """y, and what its parts give, in threads unless it is done ``alone``."""
    count = patches.segments if turned else patches.pixels
    y = scratch.empty((count, patches.length))
    work = 0 if alone else patches.pixels * patches.columns * _MULTIPLICATION
    return y, kernels.split(count, work, lambda first, last: part(y.ctypes.data, first, last), high)
