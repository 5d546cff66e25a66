"""The same HBFP convolution of several models, over patches of all their images at once.

The law is that of :mod:`golden.nn.conv`: K in the order kernel row, kernel column, channel. One call multiplies the
patches of each model by its weights, which pays where images are small; where patches would take too much memory, or a
model draws noise, whose order is that module's own, models take turns.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from ..layers import HBFPConv2d
from ..products import product
from .each import Fused
from .layers import FusedConv2d
from .parameters import Parameters
from .products import Products

#: Most numbers in the patches of all models.
PATCHES = 1 << 22


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
        if numbers * taps > PATCHES:
            return self.loop(x)
        y = _Convolution.apply(x, self.weights, products, first.stride, first.padding, first.dilation)
        products.note("conv2d", y.numel() * self.weights[0, 0].numel())
        if self.biases is None:
            return y
        return _AddBias.apply(y, self.biases)


class _Convolution(torch.autograd.Function):
    """Convolution without groups of x (models * N, C, H, W) and w (models, O, C, kh, kw), and its gradients."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, products: Products, *options: Any) -> torch.Tensor:
        """(models * N, O, OH, OW), channels last in memory."""
        stride, padding, dilation = options
        ctx.save_for_backward(x, w)
        ctx.products, ctx.options = products, options
        ph, pw = padding
        last = torch.nn.functional.pad(x.detach().permute(0, 2, 3, 1), (0, 0, pw, pw, ph, ph)).contiguous()
        ctx.patches, size = _patches(last, len(w), w.shape[3:], stride, dilation)
        y = _multiply(products, ctx.patches, w.detach().permute(0, 3, 4, 2, 1).reshape(len(w), -1, w.shape[1]), "y")
        return y.view(*size, -1).permute(0, 3, 1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        models, out, channels, *kernel = w.shape
        stride, padding, dilation = ctx.options
        gx = gw = None
        last = g.permute(0, 2, 3, 1)
        if ctx.needs_input_grad[0]:
            spread, (n, _, h, wide) = last, x.shape
            full = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
            # Zeros between the gradients of a strided convolution, and around.
            spread = g.new_zeros(n, h + 2 * padding[0] + full[0], wide + 2 * padding[1] + full[1], out)
            spread[:, full[0]:full[0] + (g.shape[2] - 1) * stride[0] + 1:stride[0],
                   full[1]:full[1] + (g.shape[3] - 1) * stride[1] + 1:stride[1]] = last
            spread = spread[:, padding[0]:padding[0] + h + full[0], padding[1]:padding[1] + wide + full[1]].contiguous()
            patches, size = _patches(spread, models, kernel, (1, 1), dilation)
            turned = w.detach().flip(3, 4).permute(0, 3, 4, 1, 2).reshape(models, -1, channels)
            gx = _multiply(ctx.products, patches, turned, "ga").view(*size, channels).permute(0, 3, 1, 2)
        if ctx.needs_input_grad[1]:
            flat = last.reshape(models, -1, out).contiguous()
            gw = _multiply(ctx.products, ctx.patches.transpose(1, 2), flat, "gb")
            gw = gw.view(models, *kernel, channels, out).permute(0, 4, 3, 1, 2)
        return gx, gw, None, None, None, None


def _patches(x, models, kernel, stride, dilation):
    """Patches of channels-last images, (models, pixels, K), and the images' size (models * N, OH, OW)."""
    n, h, w, c = x.shape
    high, wide = ((side - d * (k - 1) - 1) // s + 1
                  for side, k, s, d in zip((h, w), kernel, stride, dilation, strict=True))
    view = x.as_strided((n, high, wide, *kernel, c),
                        (h * w * c, stride[0] * w * c, stride[1] * c, dilation[0] * w * c, dilation[1] * c, 1))
    return view.reshape(models, n // models * high * wide, -1), (n, high, wide)


def _multiply(products, a, b, which):
    """``a b`` of each model in the roles of ``which``; the general way where the quick one does not serve."""
    y, left = products(a, b, which)
    for i in left:
        formats = products.formats(i, len(a))
        one, other = {"y": ("x", "w"), "ga": ("g", "w"), "gb": ("x", "g")}[which]
        turn = which == "gb"
        first = products.operand(a[i].T if turn else a[i], one, i, len(a)).along(0 if turn else -1)
        y[i] = product(first, products.operand(b[i], other, i, len(a)).along(0), formats, turn_a=turn)
    return y


class _AddBias(torch.autograd.Function):
    """Biases (models, O) added to (models * N, O, H, W); each gradient is summed as for the model alone."""

    @staticmethod
    def forward(ctx: Any, y: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Shape of ``y``."""
        ctx.models = len(bias)
        pairs = zip(y.chunk(len(bias)), bias.unbind(0), strict=True)
        return torch.cat([part + own[:, None, None] for part, own in pairs])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``y`` and ``bias``."""
        if not ctx.needs_input_grad[1]:
            return g, None
        return g, torch.stack([part.sum((0, 2, 3), keepdim=True).view(-1) for part in g.chunk(ctx.models)])
