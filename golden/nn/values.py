"""Products whose operands are rounded to any format, each along the dimension that the product sums: docs/formats.md.

torch multiplies the rounded operands in FP32, in an order of its own. Of ``y = x w``, ``gx = g w`` and ``gw = g x``
each has its own two conversions, from the tensors as they are in FP32. A convolution's blocks run along its channels,
and those of its weights' gradient along the images of the batch, whatever its groups: as in microxcaling, the reference
of OCP's formats. A row, which has one scale, is all that one sum has: of a weight an output channel, of an input an
image.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..formats.names import Operand
from . import again
from .formats import Formats
from .once import unviewed
from .products import as_hbfp
from .record import watcher
from .rounded import held

#: Axes of the two operands along which a product sums; blocks run along the first of several.
Axes = tuple[int | tuple[int, ...], int | tuple[int, ...]]


@dataclass(frozen=True)
class Kind:
    """The three products of one operation.

    Attributes
    ----------
    y, gx, gw : callable
        From rounded operands x and w, g and w, g and x, to what the product gives.
    sums : tuple of Axes
        Axes that they sum along, in that order.
    """
    y: Callable[[Any, Any], Any]
    gx: Callable[[Any, Any], Any]
    gw: Callable[[Any, Any], Any]
    sums: tuple[Axes, Axes, Axes]


LINEAR = Kind(lambda x, w: x @ w.mT, lambda g, w: g @ w, lambda g, x: g.mT @ x, ((-1, -1), (-1, 0), (0, 0)))
MATMUL = Kind(lambda a, b: a @ b, lambda g, b: g @ b.mT, lambda g, a: a.mT @ g, ((-1, -2), (-1, -1), (-2, -2)))


def convolution(x: torch.Tensor, w: torch.Tensor, transposed: bool, *, stride: Any, padding: Any, dilation: Any,
                groups: int, output_padding: Any = 0) -> Kind:
    """A convolution of x (N, C, ...) with w, (O, C / groups, ...) or, transposed, (C, O / groups, ...)."""
    options = stride, padding, dilation, transposed, output_padding or (0,) * len(stride), groups
    pixels = tuple(range(2, x.dim()))
    image, batch = (1, *pixels), (0, *pixels)
    into, out = (batch, image) if transposed else (image, batch)          # of the weight

    def gradient(g, a, b, which):
        return torch.ops.aten.convolution_backward(g, a, b, None, *options, [which == 0, which == 1, False])[which]
    return Kind(lambda a, b: torch.ops.aten.convolution(a, b, None, *options),
                lambda g, b: gradient(g, torch.empty_like(x), b, 0),
                lambda g, a: gradient(g, a, torch.empty_like(w), 1),
                ((image, into), (image, out), (batch, batch)))


@dataclass(frozen=True, eq=False)
class Seen:
    """An operand for :class:`golden.nn.record.Watcher`: what it was, and how it was rounded."""
    source: torch.Tensor
    fmt: Operand
    axis: int | tuple[int, ...]


def _product(multiply, a, b, formats, axes, turned=False):
    """A product of two tensors, each rounded along its axis first."""
    left, right = (held(t, fmt, axis) for t, fmt, axis in zip((a, b), formats, axes, strict=True))
    watching = watcher()
    if watching is not None:
        watching.product(*(Seen(*each) for each in zip((a, b), formats, axes, strict=True)), turned)
    with as_hbfp():
        return multiply(left, right)


class Product(torch.autograd.Function):
    """One operation with its gradients."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, kind: Kind, formats: Formats) -> torch.Tensor:
        """The operation."""
        ctx.save_for_backward(x, w)
        ctx.kind, ctx.formats = kind, formats
        ctx.run = again.rule(formats, lambda a, b: Product.apply(a, b, kind, formats))
        return again.made(lambda: unviewed(_product(kind.y, x, w, (formats.x, formats.w), kind.sums[0])), x,
                          lambda: kind.y(x.to("meta"), w.to("meta")).shape)

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        (x, w), kind, formats = ctx.saved_tensors, ctx.kind, ctx.formats
        gx = _product(kind.gx, g, w, (formats.g, formats.w), kind.sums[1]) if ctx.needs_input_grad[0] else None
        gw = _product(kind.gw, g, x, (formats.g, formats.x), kind.sums[2], True) if ctx.needs_input_grad[1] else None
        return gx, gw, None, None


def product(kind: Kind, x: torch.Tensor, w: torch.Tensor, formats: Formats) -> torch.Tensor:
    """The operation of two float32 tensors, with autograd."""
    return Product.apply(x, w, kind, formats)
