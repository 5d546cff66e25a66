"""The converter lanes' random numbers, compiled: :class:`golden.noise.Stream` in the kernels' own terms."""

import ctypes
from typing import Protocol

import numpy as np

from hbfp.format import HBFPFormat

from ..number.blocks import block_sides
from ..spec.noise import TRIPLES
from . import kernels, scratch

#: Lanes that the kernel runs at once, and numbers that it may write behind the end of a draw.
MOST = SLACK = 32


class Generators(Protocol):
    """What the kernels need of a :class:`golden.noise.Stream`: the lanes' states, uint32."""
    state: np.ndarray


def _layout():
    """``struct Lanes`` of noise.h as words, little-endian: states, three rows of shifts, the count in 64 bits."""
    words = np.zeros(4 * MOST + 2, np.uint32)
    words[MOST:4 * MOST].reshape(3, MOST)[:] = np.array([TRIPLES[lane % len(TRIPLES)] for lane in range(MOST)]).T
    return words


_LAYOUT = _layout()


class Running:
    """A stream's generators as the kernels read them; on leaving, the stream goes on from where they are."""

    def __init__(self, stream: Generators) -> None:
        self.stream, self.words = stream, _LAYOUT.copy()

    def __enter__(self) -> int:
        """Their address."""
        self.count = len(self.stream.state)
        self.words[:self.count], self.words[4 * MOST] = self.stream.state, self.count
        return self.words.ctypes.data

    def __exit__(self, *_: object) -> None:
        self.stream.state[:] = self.words[:self.count]


def fits(stream: Generators, terms: int) -> bool:
    """Whether the kernels can draw from ``stream`` while they convert blocks of ``terms`` along K."""
    return kernels.library() is not None and len(stream.state) <= MOST and terms % len(stream.state) == 0


def leap(stream: Generators, beats: int, count: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """States (count, :data:`MOST`) after 0, 1, 2 ... times so many beats; the stream goes on from the next after these.

    Second comes what the kernels read shifts from.
    """
    starts = np.empty((count, MOST), np.uint32)
    running = Running(stream)
    with running as here:
        kernels.loaded().hbfp_leap(here, count, beats, starts.ctypes.data)
    return starts, running.words


class Resumed:
    """Generators that go on from where a stream will be after ``numbers`` more."""

    def __init__(self, stream: Generators, numbers: int = 0) -> None:
        self.state = stream.state.copy()
        leap(self, numbers // len(self.state))


def words(stream: Generators, beats: int) -> np.ndarray:
    """Next states of at most :data:`MOST` lanes: uint32 ``(beats, lanes)``."""
    count = len(stream.state)
    out = np.empty(beats * count + SLACK, np.uint32)
    with Running(stream) as lanes:
        kernels.loaded().hbfp_draw(lanes, out.ctypes.data, beats * count, 32)
    return out[:beats * count].reshape(beats, count)


def encoded(x: np.ndarray, fmt: HBFPFormat, stream: Generators, *, axis: int = -1) -> tuple[np.ndarray, kernels.Span]:
    """:func:`golden.fast.kernels.encoded` with noise drawn from a ``stream`` that :func:`fits`.

    The noise is what ``stream.draw(x.shape, fmt, axis=axis)`` gives. ``x`` has contiguous rows.
    """
    if axis == 0 and not fmt.square:                   # drawn column by column
        # Not a power of two between rows: the lines of a column would share one set of the cache.
        y = scratch.empty((x.shape[1], x.shape[0] + 16))[:, :x.shape[0]]
        return y.T, _encode(kernels.turned(x), y, fmt, stream, -1)
    y = scratch.empty(x.shape)
    return y, _encode(x, y, fmt, stream, axis)


def _encode(x, y, fmt, stream, axis):
    span = kernels.Span.empty()
    form, (high, wide) = kernels.format_of(fmt), block_sides(fmt, axis)
    if x.size:
        with Running(stream) as lanes:
            kernels.loaded().hbfp_encode_drawn(
                x.ctypes.data, x.strides[0] // 4, y.ctypes.data, y.strides[0] // 4, *x.shape, high, wide,
                ctypes.addressof(form), lanes, ctypes.addressof(span))
    return span
