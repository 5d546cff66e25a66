"""Matrices converted to HBFP and multiplied: one definition for all layers.

On the CPU these are :mod:`golden.fast.kernels` or, without a compiler or outside their exact range, the
NumPy definitions; on a GPU those of :mod:`golden.gpu`; on other devices, and without Triton,
:mod:`golden.nn.portable`, the same steps in torch operations.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cached_property
from typing import Any

import numpy as np
import torch

from hbfp.format import HBFPFormat

from ..bfp import decode, encode
from ..fast import kernels, lanes, products
from ..floats import matmul
from ..matmul import matmul_blocks
from ..noise import Stream
from ..number.blocks import Blocks
from ..within import within
from . import converted, portable
from .formats import PLAIN, Formats
from .memory import plain
from .placed import Draw
from .record import watcher

_IN_HBFP = ContextVar("in_hbfp", default=False)


def in_hbfp() -> bool:
    """Whether the caller is part of a product of :func:`product`, which may use torch's own inside."""
    return _IN_HBFP.get()


def as_hbfp() -> AbstractContextManager[None]:
    """Within, torch's own products are part of one in HBFP."""
    return within(_IN_HBFP, True)


def check_float32(**tensors: torch.Tensor) -> None:
    """Raise ``TypeError`` with one line if a tensor is not float32."""
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32:
            raise TypeError(f"{name} must be float32, not {str(tensor.dtype).removeprefix('torch.')}")


class Operand:
    """A matrix and what it becomes in HBFP; square tiles are converted once for both orientations.

    Parameters
    ----------
    source : Tensor
        (rows, columns) float32, detached.
    fmt : HBFPFormat
        Its format.
    stream : golden.noise.Stream or Draw, optional
        Where ``stochastic`` draws from, once per conversion.
    both : bool
        Whether it will be converted along both axes: a GPU then reads it once.
    """

    def __init__(self, source: torch.Tensor, fmt: HBFPFormat, stream: Stream | Draw | None = None, *,
                 both: bool = False) -> None:
        self.source, self.fmt, self.stream, self.both = source.detach(), fmt, stream, both
        if fmt.rounding == "stochastic" and stream is None:
            raise ValueError("Rounding 'stochastic' needs a noise stream")
        self._tile: Encoded | None = None
        self._stack: converted.Stack | None = None

    def along(self, axis: int) -> "Encoded":
        """Encoded with blocks ``(1, B)`` along ``axis``; see :class:`Encoded`."""
        if not self.fmt.square:
            return Encoded(self, axis)
        if self._tile is None:
            self._tile = Encoded(self, -1)
        return self._tile

    def stack(self, axis: int) -> converted.Stack:
        """For the kernels of :mod:`golden.gpu`: one for both axes, unless each draws numbers of its own."""
        if self._stack is not None:
            return self._stack
        noise = converted.drawn(self.source, self.fmt, self.stream, axis)
        shared = noise is None or self.fmt.square or not isinstance(self.stream, Stream)
        stack = converted.Stack(self.source[None], self.fmt, None if noise is None else noise[None],
                                both=self.both and shared)
        if shared:
            self._stack = stack
        return stack


class Encoded:
    """One conversion: ``values`` as FP32 with their ``span``, or ``blocks`` where mantissas are needed."""

    def __init__(self, operand: Operand, axis: int) -> None:
        self.fmt, self.axis = operand.fmt, axis
        self.on_host = portable.on_host(operand.source)
        # What numpy() gives would fix the size of the storage, which FSDP empties between its uses of a parameter.
        self.source = np.from_dlpack(plain(operand.source)) if self.on_host else operand.source
        self.noise = self._before = None
        self._found: tuple[Any, Any] | None = None
        self.stack = None
        if converted.serves(operand.source):
            self.stack = operand.stack(axis)
            self.noise = None if self.stack.noise is None else self.stack.noise[0]
            return
        stream = operand.stream if self.fmt.rounding == "stochastic" else None
        if stream is None:
            return                                     # nothing to draw: converted when needed
        if self.on_host and isinstance(stream, Stream) and lanes.fits(stream, self.fmt.terms):
            self._before = Resumed(stream.state.copy())
            self._found = lanes.encoded(np.ascontiguousarray(self.source), self.fmt, stream, axis=axis)
            return
        self.noise = (stream.draw(tuple(self.source.shape), self.fmt, axis=axis) if self.on_host else
                      converted.drawn(self.source, self.fmt, stream, axis))

    @property
    def values(self) -> Any:
        """FP32 values of the source's shape: an array on the CPU, else a tensor."""
        return self._convert()[0] if self.on_host else self.pieces.values()

    @cached_property
    def pieces(self) -> portable.Pieces:
        """Mantissas and exponents as tensors, where the source is not on the CPU."""
        return portable.encoded(self.source, self.fmt, self.noise, axis=self.axis)

    @property
    def span(self) -> kernels.Span | None:
        """What the compiled conversion met; None where there was none."""
        return self._convert()[1] if self.on_host else None

    def _convert(self):
        if self._found is None:
            if kernels.library() is None:
                self._found = decode(encode(self.source, self.fmt, self.noise, axis=self.axis)), None
            else:
                self._found = self._compiled()
        return self._found

    def _compiled(self):
        source, noise, axis = self.source, self.noise, self.axis
        flip = source.strides[-1] != 4 and source.strides[0] == 4
        matrix = source.T if flip else np.ascontiguousarray(source)
        dice = None if noise is None else np.ascontiguousarray(noise.T if flip else noise)
        turned = (-1 if axis == 0 else 0) if flip else axis
        values, span = kernels.encoded(matrix, self.fmt, dice, axis=turned)
        return (values.T if flip else values), span

    def blocks(self, transposed: bool) -> Blocks:
        """:class:`golden.bfp.Blocks` of the matrix or its transpose."""
        source, noise, axis = self.source, self.noise, self.axis
        if self._before is not None:
            noise = Resumed(self._before.state.copy()).draw(source.shape, self.fmt, axis=axis)
        if transposed:
            source, axis = source.T, -1 if axis == 0 else 0
            noise = None if noise is None else noise.T
        return encode(source, self.fmt, noise, axis=axis)


def pieces_of(matrix: torch.Tensor, fmt: HBFPFormat, stream: Stream | None, axis: int) -> portable.Pieces:
    """A matrix in HBFP as tensors, on any device; ``stochastic`` draws from ``stream``."""
    return portable.encoded(matrix, fmt, converted.drawn(matrix, fmt, stream, axis), axis=axis)


class Resumed(Stream):
    """A stream that goes on from a state."""

    def __init__(self, state: np.ndarray) -> None:
        self.state = state


def product(a: Encoded, b: Encoded, formats: Formats, *, turn_a: bool = False, turn_b: bool = False) -> torch.Tensor:
    """``a @ b`` of two :class:`Encoded`, either turned first; a float32 tensor.

    ``a`` must have been converted along its columns' dimension K, ``b`` along its rows' (tiles
    serve both).
    """
    watching = watcher()
    if watching is not None:
        watching.product(a, b, turn_a)
    with as_hbfp():
        return _product(a, b, formats, turn_a, turn_b)


def _product(a, b, formats, turn_a, turn_b):
    if formats.mode in PLAIN:
        if not a.on_host:
            raise ValueError(f"Mode {formats.mode!r} needs CPU tensors, not {a.source.device.type}")
        left, right = a.source.T if turn_a else a.source, b.source.T if turn_b else b.source
        return torch.from_numpy(matmul(formats.mode, left, right, a.fmt.terms))
    if formats.order == "block" and a.stack is not None and b.stack is not None:
        return converted.product(a.stack.lines(turn_a), b.stack.lines(not turn_b), formats)[0]
    if not a.on_host:
        if formats.order == "quick":
            return (a.values.T if turn_a else a.values) @ (b.values.T if turn_b else b.values)
        return portable.product(a.pieces.turned() if turn_a else a.pieces, b.pieces.turned() if turn_b else b.pieces,
                                formats.accumulate, guard=formats.guard, growth=formats.growth)
    if formats.order == "quick":
        left, right = a.values.T if turn_a else a.values, b.values.T if turn_b else b.values
        return torch.from_numpy(left) @ torch.from_numpy(right)
    if kernels.adds(formats.accumulate, (a.fmt, b.fmt)) and a.span is not None and b.span is not None:
        left, right = a.values.T if turn_a else a.values, b.values.T if turn_b else b.values
        return torch.from_numpy(products.multiply(left, right, a.fmt, b.fmt, a.span, b.span, sums=formats.accumulate))
    return torch.from_numpy(matmul_blocks(a.blocks(turn_a), b.blocks(turn_b), formats.accumulate,
                                          guard=formats.guard, growth=formats.growth))
