"""Maximum pooling of all models' images with channels last, where torch's own runs as vectors."""

from typing import Any

import torch

from .each import Fused

_ATEN = torch.ops.aten
#: Channels from which on the way of the images there and back is worth it: a vector of float32.
_LEAST = 8


class FusedMaxPool(Fused):
    """``torch.nn.MaxPool2d``: other places of the same numbers in memory, the same largest ones."""

    def forward(self, x: torch.Tensor) -> Any:
        """(models * N, C, H, W) -> (models * N, C, OH, OW)."""
        layer = self.layers[0]
        if (layer.return_indices or x.dim() != 4 or x.dtype != torch.float32 or x.shape[1] < _LEAST
                or not x.numel() or not x.is_contiguous()):
            return layer(x)
        return _Largest.apply(x, (layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode))


class _Largest(torch.autograd.Function):
    """The largest number of each window, all channels of a pixel side by side."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, options: Any) -> torch.Tensor:
        """(N, C, H, W) -> (N, C, OH, OW), both contiguous."""
        y, index = _ATEN.max_pool2d_with_indices(x.contiguous(memory_format=torch.channels_last), *options)
        ctx.save_for_backward(x, index.contiguous())
        ctx.options = options
        return y.contiguous()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradient of ``x``, which can be differentiated again."""
        x, index = ctx.saved_tensors
        return _ATEN.max_pool2d_with_indices_backward(g, x, *ctx.options, index), None
