"""The same fully connected layer of several models."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..layers import HBFPLinear
from ..once import once_differentiable
from .each import Each, Fused
from .loop import aligned
from .parameters import Parameters
from .products import Linear, Products
from .proof import proven, same_bits

#: Random operands that a proof compares results of.
DRAWS = 8


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
        if (x.dim() not in (2, 3) or not x.is_contiguous() or x.dtype != torch.float32
                or torch.is_autocast_enabled("cpu")):
            return self.each(x)        # torch takes another way, whose low bits are others
        y = FP32Linear.apply(x.view(self.count, -1, x.shape[-1]), self.weights, self.biases)
        return y.view(*x.shape[:-1], y.shape[-1])


class FP32Linear(torch.autograd.Function):
    """``y = x w^T + bias`` of x (models, M, I), w (models, O, I), bias (models, O) or None, and the gradients."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """(models, M, O)."""
        ctx.save_for_backward(x, w)
        return products(x, w.mT, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x``, ``w`` and ``bias``."""
        x, w = ctx.saved_tensors
        wanted, g = ctx.needs_input_grad, g.contiguous()
        return (products(g, w) if wanted[0] else None, products(g.mT, x) if wanted[1] else None,
                row_sums(g) if wanted[2] else None)


def products(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Of each model ``torch.mm(a, b)`` or ``torch.addmm(bias, a, b)``: (models, M, K), (models, K, N), (models, N).

    In one call of torch where that is :func:`~golden.nn.fused.proof.proven` to give the bits of the calls alone.
    """
    if _begins(a) and _begins(b) and proven(("product", a.shape, a.stride(), b.shape, b.stride(), bias is None),
                                            lambda generator: _product_proof(a, b, bias, generator)):
        return torch.bmm(a, b) if bias is None else torch.baddbmm(bias[:, None], a, b)
    return torch.stack(_products(a, b, bias))


def row_sums(g: torch.Tensor) -> torch.Tensor:
    """Of each model ``g.sum(0)``, (models, M, N) -> (models, N)."""
    def proof(generator):
        like = torch.randn(DRAWS, *g.shape, generator=generator)
        return all(same_bits(each.sum(1), [own.clone().sum(0) for own in each]) for each in like)
    if _begins(g) and proven(("sum", g.shape), proof):
        return g.sum(1)
    return torch.stack([own.sum(0) for own in aligned(g.unbind(0))])


def _begins(stack):
    return not stack.data_ptr() % 64


def _products(a, b, bias):
    sides = zip(aligned(a.unbind(0)), aligned(b.unbind(0)), strict=True)
    if bias is None:
        return [torch.mm(one, other) for one, other in sides]
    return [torch.addmm(own, one, other) for own, (one, other) in zip(bias, sides, strict=True)]


def _product_proof(a, b, bias, generator):
    """Random products of these sizes and places."""
    for _ in range(DRAWS):
        one, other = (torch.randn(x.shape, generator=generator) for x in (a, b))
        one, other = (torch.empty_strided(x.shape, x.stride()).copy_(values) for x, values in ((a, one), (b, other)))
        add = None if bias is None else torch.randn(bias.shape, generator=generator)
        whole = torch.bmm(one, other) if add is None else torch.baddbmm(add[:, None], one, other)
        if not same_bits(whole, _products(one, other, add)):
            return False
    return True
