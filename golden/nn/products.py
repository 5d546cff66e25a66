"""Matrices converted to HBFP and multiplied: one definition for all layers.

On the CPU these are :mod:`golden.fast.kernels` or, without a compiler or outside their exact range, the
NumPy definitions; on other devices :mod:`golden.nn.portable`, the same steps in torch operations.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import torch

from hbfp.format import HBFPFormat

from ..bfp import Blocks, decode, encode
from ..fast import kernels
from ..matmul import matmul_blocks
from ..noise import Stream
from . import portable
from .formats import Formats

_IN_HBFP = ContextVar("in_hbfp", default=False)


def in_hbfp() -> bool:
    """Whether the caller is part of a product of :func:`product`, which may use torch's own inside."""
    return _IN_HBFP.get()


@contextmanager
def as_hbfp() -> Iterator[None]:
    """Within, torch's own products are part of one in HBFP."""
    token = _IN_HBFP.set(True)
    try:
        yield
    finally:
        _IN_HBFP.reset(token)


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
    stream : golden.noise.Stream, optional
        Where ``stochastic`` draws from, once per conversion.
    """

    def __init__(self, source: torch.Tensor, fmt: HBFPFormat, stream: Stream | None = None) -> None:
        self.source, self.fmt, self.stream = source.detach(), fmt, stream
        if fmt.rounding == "stochastic" and stream is None:
            raise ValueError("Rounding 'stochastic' needs a noise stream")
        self._tile: Encoded | None = None

    def along(self, axis: int) -> "Encoded":
        """Encoded with blocks ``(1, B)`` along ``axis``; see :class:`Encoded`."""
        if not self.fmt.square:
            return Encoded(self, axis)
        if self._tile is None:
            self._tile = Encoded(self, -1)
        return self._tile


class Encoded:
    """One conversion: ``values`` as FP32, and what a fallback needs to repeat it."""

    def __init__(self, operand: Operand, axis: int) -> None:
        source, fmt = operand.source, operand.fmt
        self.fmt, self.axis = fmt, axis
        noise = None
        if operand.stream is not None and fmt.rounding == "stochastic":
            noise = operand.stream.draw(tuple(source.shape), fmt, axis=axis)
        if source.device.type != "cpu":
            self.source, self.noise = source, None if noise is None else torch.from_numpy(noise).to(source.device)
            self.values, self.span = portable.encoded(source, fmt, self.noise, axis=axis)
            return
        self.source, self.noise = source.numpy(), noise
        flip = self.source.strides[-1] != 4 and self.source.strides[0] == 4
        matrix = self.source.T if flip else np.ascontiguousarray(self.source)
        dice = None if noise is None else np.ascontiguousarray(noise.T if flip else noise)
        if kernels.library() is None:
            self.values, self.span = decode(encode(self.source, fmt, noise, axis=axis)), None
            return
        turned = (-1 if axis == 0 else 0) if flip else axis
        values, self.span = kernels.encoded(matrix, fmt, dice, axis=turned)
        self.values = values.T if flip else values

    def blocks(self, transposed: bool) -> Blocks:
        """:class:`golden.bfp.Blocks` of the matrix or its transpose."""
        source, noise, axis = self.source, self.noise, self.axis
        if transposed:
            source, axis = source.T, -1 if axis == 0 else 0
            noise = None if noise is None else noise.T
        return encode(source, self.fmt, noise, axis=axis)


def product(a: Encoded, b: Encoded, formats: Formats, *, turn_a: bool = False, turn_b: bool = False) -> torch.Tensor:
    """``a @ b`` of two :class:`Encoded`, either turned first; a float32 tensor.

    ``a`` must have been converted along its columns' dimension K, ``b`` along its rows' (tiles
    serve both).
    """
    with as_hbfp():
        return _product(a, b, formats, turn_a, turn_b)


def _product(a, b, formats, turn_a, turn_b):
    if torch.is_tensor(a.values):
        left, right = a.values.T if turn_a else a.values, b.values.T if turn_b else b.values
        if formats.order == "quick":
            return left @ right
        if formats.accumulate == "aligned":
            raise ValueError("Accumulation 'aligned' needs CPU tensors")
        return portable.product(left, right, a.fmt, b.fmt, a.span, b.span)
    left, right = a.values.T if turn_a else a.values, b.values.T if turn_b else b.values
    if formats.order == "quick":
        return torch.from_numpy(left) @ torch.from_numpy(right)
    if formats.accumulate == "fp32" and a.span is not None and b.span is not None \
            and kernels.exact(a.fmt, b.fmt, a.span, b.span):
        return torch.from_numpy(kernels.product(left, right, a.fmt.terms))
    return torch.from_numpy(matmul_blocks(a.blocks(turn_a), b.blocks(turn_b), formats.accumulate))
