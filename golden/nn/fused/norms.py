"""Batch normalisation of several models in training, in machine code."""

import copy
import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from ...fast import kernels
from ...fast.alike import Norm
from ..memory import plain
from ..once import once_differentiable
from .layers import FusedBatchNorm
from .proof import proven, same_layers

_ATEN = torch.ops.aten
#: Numbers in a vector of torch's, of which pixels or channels must be a multiple.
_WIDE = 8


class QuickBatchNorm(FusedBatchNorm):
    """One call for all models where that is :func:`~golden.nn.fused.proof.proven` to have torch's bits."""

    def forward(self, x: torch.Tensor, rectified: bool = False) -> torch.Tensor:
        """Shape of ``x``; ``rectified``: and a ReLU."""
        sizes = _sizes(x, self.count)
        first = self.layers[0]
        if (sizes is None or kernels.library() is None or not all(layer.training for layer in self.layers)
                or not proven(("batch norm", sizes, x.dim(), first.affine, first.track_running_stats),
                              lambda generator: self._proof(x, generator))):
            y = super().forward(x)
            return y.relu() if rectified else y
        return self._once(x, rectified)

    def _once(self, x, rectified=False):
        first = self.layers[0]
        for layer in self.layers:
            layer._check_input_dim(x)
        sizes: Any = _sizes(x, self.count)
        if first.track_running_stats and first.num_batches_tracked is not None:
            torch._foreach_add_([layer.num_batches_tracked for layer in self.layers], 1)
        norms = (Norm * self.count)(*(_norm(sizes, layer) for layer in self.layers))
        return _Normalise.apply(x, self.weights, self.biases, norms, self.layers, rectified)

    def _proof(self, like, generator):
        """Layers of random numbers alone and here, with all gradients."""
        layers = [copy.deepcopy(layer) for layer in self.layers]
        for layer in layers:
            for own in [*layer.parameters(), *layer.buffers()]:
                if own.is_floating_point():
                    own.data = torch.rand(own.shape, generator=generator) + 0.5
        x, top = (torch.empty_strided(like.shape, like.stride()).copy_(
            torch.randn(like.shape, generator=generator) + 1) for _ in range(2))
        return same_layers(layers, x, top, lambda layer, own: layer(own),
                           lambda twins, held: QuickBatchNorm(twins, held)._once)


class _Normalise(torch.autograd.Function):
    """Of x (models * N, C, ...), weight and bias (models, C) or None."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, norms: Any,
                layers: Sequence[torch.nn.Module], rectified: bool) -> torch.Tensor:
        """Shape of ``x``."""
        y, (mean, inverse) = torch.empty_like(x), torch.empty(2, len(norms), norms[0].channels)
        for i, norm in enumerate(norms):
            norm.weight = None if weight is None else weight.data_ptr() + 4 * i * weight.stride(0)
            norm.bias = None if bias is None else bias.data_ptr() + 4 * i * bias.stride(0)
        ctx.save_for_backward(x, weight, mean, inverse, y if rectified else x)
        ctx.norms, ctx.layers, ctx.rectified = norms, layers, rectified
        _run(kernels.loaded().hbfp_alike_normalise, norms, rectified, (x, y, mean, inverse))
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x``, ``weight`` and ``bias``."""
        x, weight, mean, inverse, y = ctx.saved_tensors
        norms, count, wanted = ctx.norms, len(ctx.norms), list(ctx.needs_input_grad[:3])
        rectified = ctx.rectified
        if rectified and g.stride() != x.stride():
            if _rectified_stride(g.shape, g.stride(), x.stride()) == x.stride():
                g = torch.empty_like(x).copy_(g)
            else:
                g, rectified = _ATEN.threshold_backward(g, y, 0), False
        if g.stride() != x.stride():
            gradients = [_ATEN.native_batch_norm_backward(*own, None, None, m, d, True, layer.eps, wanted)
                         for *own, m, d, layer in zip(g.chunk(count), x.chunk(count),
                                                      [None] * count if weight is None else weight, mean, inverse,
                                                      ctx.layers, strict=True)]
            gx, gw, gb = zip(*gradients, strict=True)
            return (torch.cat(gx) if wanted[0] else None, torch.stack(gw) if wanted[1] else None,
                    torch.stack(gb) if wanted[2] else None, None, None, None)
        gx = torch.empty_like(x) if wanted[0] else None
        gw, gb = torch.empty_like(mean), torch.empty_like(mean)
        _run(kernels.loaded().hbfp_alike_gradients, norms, rectified, (x, g, y, mean, inverse, gx, gw, gb))
        return gx, gw if wanted[1] else None, gb if wanted[2] else None, None, None, None


@lru_cache
def _rectified_stride(shape, g, y):
    """Of what torch makes of a gradient and a ReLU's output with other strides."""
    like = (torch.empty_strided(shape, stride, device="meta") for stride in (g, y))
    return _ATEN.threshold_backward(*like, 0).stride()


def _run(kernel, norms, rectified, tensors):
    """Call a kernel with tensors of all models, or None, in parts for threads."""
    tensors = [t if t is None else plain(t) for t in tensors]          # kept until the numbers are read

    def part(low, last):
        kernel(last - low, ctypes.addressof(norms[low]), rectified,
               *(None if t is None else t.data_ptr() + 4 * low * (t.numel() // len(norms)) for t in tensors))
    kernels.split(len(norms), 4 * tensors[0].numel() * kernels.ELEMENT, part)


def _sizes(x, count):
    """Images of a model, channels, pixels, and whether channels come last in memory; None if it is not known how."""
    if x.dtype != torch.float32 or x.device.type != "cpu" or x.dim() < 3 or not x.numel():
        return None
    images, channels, pixels = len(x) // count, x.shape[1], math.prod(x.shape[2:])
    if x.is_contiguous():
        return (images, channels, pixels, 0) if pixels % _WIDE == 0 else None
    if x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last) and channels % _WIDE == 0:
        return images, channels, pixels, 1
    return None


def _norm(sizes, layer):
    """What the kernel reads of a layer, which has counted the batch."""
    momentum = layer.momentum or 0.0
    if layer.momentum is None and layer.track_running_stats and layer.num_batches_tracked is not None:
        momentum = 1.0 / float(layer.num_batches_tracked)
    running = [layer.running_mean.data_ptr(), layer.running_var.data_ptr()] if layer.track_running_stats else [0, 0]
    return Norm(*sizes, 0, 0, *running, momentum, 1 - momentum, layer.eps)
