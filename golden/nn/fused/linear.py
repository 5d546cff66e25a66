"""The same fully connected layer of several models."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from ...fast import kernels
from ..layers import HBFPLinear
from ..once import once_differentiable
from . import links
from .each import Each, Fused
from .loop import aligned
from .parameters import Parameters
from .products import Linear, Products
from .proof import proven, same_bits

#: Random operands that a proof compares results of.
DRAWS = 8
#: Most multiplications in a product of one model that machine code here does: a library is quicker at larger ones.
MOST = 1 << 21
#: Columns from which on none of them has dot products.
DOTS = 16


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

    In one call where that is :func:`~golden.nn.fused.proof.proven` to give the bits of the calls alone: torch's, which
    is the quicker one by itself, or that of the machine code.
    """
    way = None if _at_once(a, b, bias) else alike(a, b, bias)
    return library(a, b, bias) if way is None else links.product(a, b, bias, way)


def library(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """:func:`products` by torch's library, in one call or several."""
    return together(a, b, bias) if _at_once(a, b, bias) else torch.stack(_products(a, b, bias))


def _at_once(a, b, bias):
    return _begins(a) and _begins(b) and joined(a, b, bias)


def joined(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> bool:
    """Whether one call of torch has the bits of its products of these sizes and places."""
    return _proven("product", together, a, b, bias)


def alike(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> int | None:
    """How the machine code has the bits of torch's products of these sizes and places: ``dots`` of
    :func:`golden.nn.fused.links.product`; None if it has not."""
    if kernels.library() is None or 1 not in b.stride()[1:] or not 0 < a[0].numel() * b.shape[2] <= MOST:
        return None
    dots = a.stride(2) == b.stride(1) == 1 and b.shape[2] < DOTS
    ways = [("alike", links.product, 0), ("alike dots", partial(links.product, dots=1), 1)][:1 + dots]
    return next((number for name, way, number in ways if _proven(name, way, a, b, bias)), None)


def together(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None,
             out: torch.Tensor | None = None) -> torch.Tensor:
    """The products in one call of torch."""
    return torch.bmm(a, b, out=out) if bias is None else torch.baddbmm(bias[:, None], a, b, out=out)


def _proven(name, together, a, b, bias):
    return proven((name, a.shape, a.stride(), b.shape, b.stride(), bias is None),
                  lambda generator: _product_proof(together, a, b, bias, generator))


def row_sums(g: torch.Tensor) -> torch.Tensor:
    """Of each model ``g.sum(0)``, (models, M, N) -> (models, N)."""
    if _begins(g) and _sums_proven("sum", lambda each: each.sum(1), g):
        return g.sum(1)
    return torch.stack([own.sum(0) for own in aligned(g.unbind(0))])


def adds_alike(g: torch.Tensor) -> bool:
    """Whether the machine code has the bits of torch's sums over rows of these sizes."""
    return kernels.library() is not None and _sums_proven("alike sum", links.row_sums, g)


def _sums_proven(name, together, g):
    def proof(generator):
        like = torch.randn(DRAWS, *g.shape, generator=generator)
        return all(same_bits(together(each), [own.clone().sum(0) for own in each]) for each in like)
    return proven((name, g.shape), proof)


def _begins(stack):
    return not stack.data_ptr() % 64


def _products(a, b, bias):
    sides = zip(aligned(a.unbind(0)), aligned(b.unbind(0)), strict=True)
    if bias is None:
        return [torch.mm(one, other) for one, other in sides]
    return [torch.addmm(own, one, other) for own, (one, other) in zip(bias, sides, strict=True)]


def _product_proof(together, a, b, bias, generator):
    """Random products of these sizes and places; of the last ones many are zeros with a sign."""
    for draw in range(DRAWS):
        one, other = (torch.randn(x.shape, generator=generator) for x in (a, b))
        if draw >= DRAWS - 2:
            one *= torch.rand(one.shape, generator=generator) < 0.5
            one[:, ::3] *= 0
            other[:, :, ::3] = -other[:, :, ::3].abs() * (draw % 2)
        one, other = (torch.empty_strided(x.shape, x.stride()).copy_(values) for x, values in ((a, one), (b, other)))
        add = None if bias is None else torch.randn(bias.shape, generator=generator)
        if not same_bits(together(one, other, add), _products(one, other, add)):
            return False
    return True
