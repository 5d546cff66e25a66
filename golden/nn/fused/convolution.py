"""The same HBFP convolution of several models, over patches of all their images at once.

The law is that of :mod:`golden.nn.conv_products`: K in the order kernel row, kernel column, channel. One call gathers
the patches of each model and multiplies them by its weights, which pays where images are small; where patches would
take too much memory, or a model draws noise, whose order is that module's own, models take turns.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch

from ...fast import patches
from .. import unfold
from ..conv_products import together
from ..layers import HBFPConv2d
from ..memory import array
from ..once import once_differentiable, unviewed
from ..phases import phases
from .each import Fused
from .layers import FusedConv2d
from .parameters import Parameters
from .products import Products

#: Most numbers in the patches of all models, and in their weights: large ones outweigh the calls that are saved.
PATCHES, WEIGHTS = 1 << 22, 1 << 20


class StackedConv2d(Fused):
    """:class:`~golden.nn.HBFPConv2d` of several models; each with its own formats and noise."""

    def __init__(self, layers: Sequence[HBFPConv2d], parameters: Parameters) -> None:
        super().__init__(layers, parameters)
        self.weights: Any = parameters.stack(layers[0].weight)
        self.biases = parameters.stack(layers[0].bias)
        self.products, self.loop = Products(layers), FusedConv2d(layers, parameters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(models * N, C, H, W) -> (models * N, O, OH, OW)."""
        first, products = self.layers[0], self.products.refresh()
        if not (products.all_quick and products.serve(x) and x.dim() == 4 and x.shape[1] == first.in_channels
                and all(map(self.loop.serves, self.layers))):
            return self.loop(x)
        size = max(x.shape[1], first.out_channels)
        numbers = x.shape[0] * (x.shape[2] + 2 * first.padding[0]) * (x.shape[3] + 2 * first.padding[1]) * size
        taps = first.kernel_size[0] * first.kernel_size[1]
        if numbers * taps > PATCHES or self.weights.numel() > WEIGHTS:
            return self.loop(x)
        y = _Convolution.apply(x, self.weights, self.biases, products, first.stride, first.padding, first.dilation)
        products.note("conv2d", y.numel() * self.weights[0, 0].numel())
        return y


class _Convolution(torch.autograd.Function):
    """Convolution without groups of x (models * N, C, H, W) and w (models, O, C, kh, kw), and its gradients."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, products: Products,
                *options: Any) -> torch.Tensor:
        """(models * N, O, OH, OW), channels last in memory."""
        stride, padding, dilation = options
        ctx.save_for_backward(x, w)
        ctx.products, ctx.options = products, options
        ctx.last = unfold.channels_last(x.detach(), (padding[1], padding[1], padding[0], padding[0]))
        matrix = w.detach().permute(0, 3, 4, 2, 1).reshape(len(w), -1, w.shape[1])
        y, size = _over_channels(products, ctx.last, matrix, "y", w.shape[3:], stride, dilation)
        if bias is not None:
            y += bias.detach()[:, None]
        return unviewed(y.view(*size, -1).permute(0, 3, 1, 2))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x``, ``w`` and ``bias``."""
        x, w = ctx.saved_tensors
        models, out, channels, *kernel = w.shape
        stride, padding, dilation = ctx.options
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            def own(phase):
                taps = unfold.taps_of(w.detach().flatten(0, 1), phase).unflatten(0, (models, out))
                taps = taps.permute(0, 3, 4, 1, 2).reshape(models, -1, channels)
                y, size = _over_channels(ctx.products, unfold.within(g, phase), taps, "ga", phase.size, (1, 1),
                                         phase.step)
                return y.view(*size, channels)
            found = phases(kernel, x.shape[2:], stride, padding, dilation)
            gx = together(found, own, g, (len(x), *x.shape[2:], channels)).permute(0, 3, 1, 2)
        if ctx.needs_input_grad[1]:
            flat = unfold.channels_last(g, (0, 0, 0, 0)).reshape(models, -1, out)
            places, step = _places(ctx.last, models, kernel, stride, dilation)
            gw = ctx.products.patches(places, step, flat, "gb")
            gw = gw.view(models, *kernel, channels, out).permute(0, 4, 3, 1, 2)
        if ctx.needs_input_grad[2]:
            # Each is summed as for the model alone.
            gb = torch.stack([part.sum((0, 2, 3), keepdim=True).view(-1) for part in g.chunk(models)])
        return gx, gw, gb, None, None, None, None


def _places(x, models, kernel, stride, dilation):
    """Where the patches of the first model lie in channels-last images of all, and numbers of a model."""
    shape = len(x) // models, *x.shape[1:]
    return patches.Patches(array(x), *unfold.runs(shape, tuple(kernel), stride, dilation)), math.prod(shape)


def _over_channels(products, x, matrix, which, kernel, stride, dilation):
    """Patches of channels-last ``x`` times ``matrix`` (models, K, N), (models, pixels, N), and (images, OH, OW)."""
    places, step = _places(x, len(matrix), kernel, stride, dilation)
    high, wide = ((side - d * (k - 1) - 1) // s + 1
                  for side, k, s, d in zip(x.shape[1:3], kernel, stride, dilation, strict=True))
    return products.patches(places, step, matrix, which), (len(x), high, wide)
