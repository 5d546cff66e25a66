"""Maximum pooling of all models' planes in machine code; any way of it gives the same numbers."""

import ctypes
from typing import Any

import torch

from ...fast import kernels
from ..once import once_differentiable
from .each import Fused

_INTS = ctypes.c_int64 * 2


class _Windows(ctypes.Structure):
    """``struct Windows`` of alike_norm.h."""
    _fields_ = [("high", ctypes.c_int64), ("wide", ctypes.c_int64),
                *((name, _INTS) for name in ("kernel", "stride", "padding", "dilation")),
                ("rows", ctypes.c_int64), ("columns", ctypes.c_int64)]


class FusedMaxPool(Fused):
    """``torch.nn.MaxPool2d``."""

    def forward(self, x: torch.Tensor) -> Any:
        """(models * N, C, H, W) -> (models * N, C, OH, OW)."""
        layer = self.layers[0]
        options = [_pair(value) for value in (layer.kernel_size, layer.stride, layer.padding, layer.dilation)]
        if (layer.return_indices or x.dim() != 4 or x.dtype != torch.float32 or x.device.type != "cpu" or not x.numel()
                or not x.is_contiguous() or kernels.library() is None):
            return layer(x)
        sides = [_side(side, [pair[i] for pair in options], layer.ceil_mode) for i, side in enumerate(x.shape[2:])]
        if min(sides) < 1 or any(2 * pad > kernel for kernel, pad in zip(options[0], options[2], strict=True)):
            return layer(x)                            # which says what is wrong
        return _Largest.apply(x, _Windows(*x.shape[2:], *(_INTS(*pair) for pair in options), *sides), options,
                              layer.ceil_mode)


class _Largest(torch.autograd.Function):
    """The largest numbers of windows."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, windows: Any, options: Any, ceil_mode: bool) -> torch.Tensor:
        """(N, C, H, W) -> (N, C, OH, OW)."""
        y = torch.empty(*x.shape[:2], windows.rows, windows.columns)
        index = torch.empty_like(y, dtype=torch.int64)
        planes, numbers = x.shape[0] * x.shape[1], y[0, 0].numel()

        def part(low, last):
            kernels.loaded().hbfp_alike_largest(x.data_ptr() + 4 * low * x[0, 0].numel(), last - low,
                                                ctypes.addressof(windows), y.data_ptr() + 4 * low * numbers,
                                                index.data_ptr() + 8 * low * numbers)
        kernels.split(planes, y.numel() * options[0][0] * options[0][1], part)
        ctx.save_for_backward(x, index)
        ctx.options = *options, ceil_mode
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradient of ``x``."""
        x, index = ctx.saved_tensors
        return torch.ops.aten.max_pool2d_with_indices_backward(g, x, *ctx.options, index), None, None, None


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def _side(side, options, ceil_mode):
    """Windows along a side, as torch counts them."""
    kernel, stride, padding, dilation = options
    room = side + 2 * padding - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - (ceil_mode and (count - 1) * stride >= side + padding)
