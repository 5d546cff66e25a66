"""The converter lanes' random numbers, compiled: :class:`golden.noise.Stream` in the kernels' own terms."""

import ctypes
from typing import Protocol

import numpy as np

from hbfp.format import HBFPFormat

from ..blocks import block_sides
from ..spec.noise import TRIPLES
from . import kernels

#: Lanes that the kernel runs at once, and numbers that it may write behind the end of a draw.
MOST = SLACK = 32


class Generators(Protocol):
    """What the kernels need of a :class:`golden.noise.Stream`: the lanes' states, uint32."""
    state: np.ndarray


class _Lanes(ctypes.Structure):
    """``struct Lanes`` of noise.h."""
    _fields_ = [("state", ctypes.c_uint32 * MOST), ("shifts", ctypes.c_uint32 * MOST * 3), ("count", ctypes.c_int64)]


class Running:
    """A stream's generators as the kernels read them; on leaving, the stream goes on from where they are."""

    def __init__(self, stream: Generators) -> None:
        self.stream = stream

    def __enter__(self) -> ctypes.Structure:
        state = self.stream.state
        self.lanes = _Lanes(count=len(state))
        self.lanes.state[:len(state)] = state.tolist()
        for kind, shifts in enumerate(zip(*(TRIPLES[lane % len(TRIPLES)] for lane in range(MOST)), strict=True)):
            self.lanes.shifts[kind][:] = shifts
        return self.lanes

    def __exit__(self, *_: object) -> None:
        self.stream.state[:] = self.lanes.state[:len(self.stream.state)]


def fits(stream: Generators, terms: int) -> bool:
    """Whether the kernels can draw from ``stream`` while they convert blocks of ``terms`` along K."""
    return kernels.library() is not None and len(stream.state) <= MOST and terms % len(stream.state) == 0


class Resumed:
    """Generators that go on from where a stream will be after ``numbers`` more."""

    def __init__(self, stream: Generators, numbers: int = 0) -> None:
        self.state = stream.state.copy()
        beats, most = numbers // len(self.state), 1 << 16
        for start in range(0, beats, most):
            words(self, min(most, beats - start))


def words(stream: Generators, beats: int) -> np.ndarray:
    """Next states of at most :data:`MOST` lanes: uint32 ``(beats, lanes)``."""
    count = len(stream.state)
    out = np.empty(beats * count + SLACK, np.uint32)
    with Running(stream) as lanes:
        kernels.loaded().hbfp_draw(ctypes.addressof(lanes), out.ctypes.data, beats * count, 32)
    return out[:beats * count].reshape(beats, count)


def encoded(x: np.ndarray, fmt: HBFPFormat, stream: Generators, *, axis: int = -1) -> tuple[np.ndarray, kernels.Span]:
    """:func:`golden.fast.kernels.encoded` with noise drawn from a ``stream`` that :func:`fits`.

    The noise is what ``stream.draw(x.shape, fmt, axis=axis)`` gives. ``x`` has contiguous rows.
    """
    if axis == 0 and not fmt.square:                   # drawn column by column
        # Not a power of two between rows: the lines of a column would share one set of the cache.
        y = np.empty((x.shape[1], x.shape[0] + 16), np.float32)[:, :x.shape[0]]
        return y.T, _encode(kernels.turned(x), y, fmt, stream, -1)
    y = np.empty(x.shape, np.float32)
    return y, _encode(x, y, fmt, stream, axis)


def _encode(x, y, fmt, stream, axis):
    span = kernels.Span.empty()
    form, (high, wide) = kernels.format_of(fmt), block_sides(fmt, axis)
    if x.size:
        with Running(stream) as lanes:
            kernels.loaded().hbfp_encode_drawn(
                x.ctypes.data, x.strides[0] // 4, y.ctypes.data, y.strides[0] // 4, *x.shape, high, wide,
                ctypes.addressof(form), ctypes.addressof(lanes), ctypes.addressof(span))
    return span
