"""The same fully connected layer of several models."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..layers import HBFPLinear
from ..once import once_differentiable
from .each import Each, Fused
from .parameters import Parameters
from .products import Linear, Products


class FusedLinear(Fused):
    """:class:`~golden.nn.HBFPLinear` of several models, in one call; each with its own formats and noise."""

    def __init__(self, layers: Sequence[HBFPLinear], parameters: Parameters) -> None:
        super().__init__(layers, parameters)
        self.weights, self.biases = parameters.stack(layers[0].weight), parameters.stack(layers[0].bias)
        self.products, self.each = Products(layers), Each(layers, parameters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(models * N, ..., I) -> (models * N, ..., O)."""
        products = self.products.refresh()
        if not products.serve(x):
            return self.each(x)
        rows = x.reshape(self.count, -1, x.shape[-1]).contiguous()
        y = Linear.apply(rows, self.weights, self.biases, products)
        products.note("linear", rows.numel() * y.shape[-1])
        return y.view(*x.shape[:-1], y.shape[-1])


class FusedFP32Linear(Fused):
    """``torch.nn.Linear`` of several models, in FP32: torch's own products, one after the other in one call."""

    def __init__(self, layers: Sequence[nn.Linear], parameters: Parameters) -> None:
        super().__init__(layers, parameters)
        self.weights, self.biases = parameters.stack(layers[0].weight), parameters.stack(layers[0].bias)
        self.each = Each(layers, parameters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(models * N, ..., I) -> (models * N, ..., O)."""
        if not (x.dim() in (2, 3) and x.is_contiguous() and x.dtype == torch.float32):
            return self.each(x)        # torch takes another way, whose low bits are others
        y = _FP32Linear.apply(x.view(self.count, -1, x.shape[-1]), self.weights, self.biases)
        return y.view(*x.shape[:-1], y.shape[-1])


class _FP32Linear(torch.autograd.Function):
    """``y = x w^T + bias`` of x (models, M, I), w (models, O, I), bias (models, O) or None, and the gradients."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """(models, M, O)."""
        ctx.save_for_backward(x, w)
        turned = w.transpose(1, 2).unbind(0)
        if bias is None:
            return products(torch.mm, aligned(x), turned, (x.shape[1], w.shape[1]))
        return products(torch.addmm, bias.unbind(0), aligned(x), turned, (x.shape[1], w.shape[1]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x``, ``w`` and ``bias``."""
        x, w = ctx.saved_tensors
        g, gx, gw, gb = g.contiguous(), None, None, None
        tops = aligned(g)
        if ctx.needs_input_grad[0]:
            gx = products(torch.mm, tops, w.unbind(0), tuple(x.shape[1:]))
        if ctx.needs_input_grad[1]:
            gw = products(torch.mm, [top.t() for top in tops], aligned(x), tuple(w.shape[1:]))
        if ctx.needs_input_grad[2]:
            gb = torch.stack([top.sum(0) for top in tops])
        return gx, gw, gb


def aligned(stack: torch.Tensor) -> Sequence[torch.Tensor]:
    """Each model's tensor, beginning where torch begins its own: on that depend the low bits of some libraries."""
    parts = stack.unbind(0)
    if stack.data_ptr() % 64 or stack.stride(0) % 16:
        return [part.clone() for part in parts]
    return parts


def products(call: Any, *operands: Any) -> torch.Tensor:
    """``call`` of torch, with ``out``, for each model; the last of ``operands`` is the shape of each result."""
    *sides, shape = operands
    y = torch.empty(len(sides[0]), *shape)
    if y.stride(0) % 16:
        return torch.stack([call(*own) for own in zip(*sides, strict=True)])
    for out, *own in zip(y.unbind(0), *sides, strict=True):
        call(*own, out=out)
    return y
