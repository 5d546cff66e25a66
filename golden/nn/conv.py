"""Convolution of images or volumes with autograd; the law of its products is :mod:`golden.nn.conv_products`'s."""

from typing import Any

import torch

from ..noise import Stream
from . import again, conv_products, unfold
from .alike_groups import AlikeGroups
from .conv_products import joined
from .converted import given
from .depthwise import Depthwise
from .formats import Formats
from .grouped import Grouped
from .once import unviewed
from .placed import by_groups, by_role
from .products import check_float32
from .stacked_groups import StackedGroups
from .unfold import Sides


class Conv2d(torch.autograd.Function):
    """Convolution and its two gradients, group after group."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: Sides, padding: Sides, dilation: Sides,
                formats: Formats, stream: Stream | None, groups: int = 1) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (O, C / groups, kh, kw) -> (N, O, OH, OW), channels last in memory.

        With depth in front of H, kh and OH, too, but then without a stream.
        """
        ctx.save_for_backward(x, w)
        ctx.run = again.rule(formats, lambda a, b: Conv2d.apply(a, b, stride, padding, dilation, formats, None, groups))
        stream, _, of_g = by_role(stream)
        ctx.options, ctx.groups = (stride, padding, dilation, formats, of_g), groups
        around, size = unfold.around(padding), tuple(w.shape[2:])
        ctx.last = [unfold.channels_last(part, around) for part in x.detach().chunk(groups, 1)]
        if again.is_unread():
            return x.new_empty(unfold.output_shape(x, w, stride, padding, dilation))
        parts = [conv_products.over_channels(last, unfold.weight_matrix(own), formats.x, formats.w, formats, stream,
                                             size, stride, dilation)
                 for last, own in zip(ctx.last, w.detach().chunk(groups), strict=True)]
        return unviewed(joined(parts).movedim(-1, 1))

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        (stride, padding, dilation, formats, stream), size = ctx.options, tuple(w.shape[2:])
        shape = x.shape[0], x.shape[1] // ctx.groups, *x.shape[2:]
        gx, gw = [], []
        draws = by_groups(given(stream, g, formats.g) if len(size) == 2 else stream, ctx.groups)
        for last, own, top, draw in zip(ctx.last, w.chunk(ctx.groups), g.chunk(ctx.groups, 1), draws, strict=True):
            if ctx.needs_input_grad[0]:
                gx.append(conv_products.input_gradient(top, own, shape, stride, padding, dilation, formats, draw))
            if ctx.needs_input_grad[1]:
                flat = unfold.channels_last(top, [0] * 2 * len(size))
                gw.append(conv_products.over_pixels(last, flat, formats, draw, size, stride, dilation))
        return joined(gx).movedim(-1, 1) if gx else None, joined(gw, 0) if gw else None, *[None] * 6


@torch.compiler.disable
def conv2d(x: torch.Tensor, w: torch.Tensor, formats: Formats, *, stride: tuple[int, int] = (1, 1),
           padding: tuple[int, int] = (0, 0), dilation: tuple[int, int] = (1, 1), groups: int = 1,
           stream: Stream | None = None) -> torch.Tensor:
    """Convolution of x (N, C, H, W) with w (O, C / groups, kh, kw); zeros around."""
    check_images(x, w, padding, dilation, groups)
    return convolved(x, w, stride, padding, dilation, formats, stream, groups)


def frozen_conv2d(x: torch.Tensor, w: torch.Tensor, kept: Any, stride: Sides, padding: Sides, dilation: Sides,
                  formats: Formats, stream: Stream | None) -> torch.Tensor:
    """:func:`conv2d` without groups and gradients; ``kept``: :func:`golden.nn.unfold.weight_matrix`, converted."""
    check_images(x, w, padding, dilation, 1)
    last, (stream, _, _) = unfold.channels_last(x.detach(), unfold.around(padding)), by_role(stream)
    serves = unfold.compiled(last, (formats.x, formats.w), formats, stream)
    return conv_products.over_channels(last, None if serves else unfold.weight_matrix(w), formats.x, formats.w, formats,
                                       stream, tuple(w.shape[2:]), stride, dilation,
                                       kept if serves else None).movedim(-1, 1)


def check_images(x: torch.Tensor, w: torch.Tensor, padding: Sides, dilation: Sides, groups: int) -> None:
    """Raise ``TypeError`` or ``ValueError`` with one line unless a convolution takes ``x`` and ``w``."""
    check_float32(input=x, weight=w)
    if x.dim() != 4 or w.dim() != 4 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ValueError(f"Shapes of input and weight must be (N, C, H, W) and (O, C / groups, kh, kw), not "
                         f"{tuple(x.shape)} and {tuple(w.shape)} with {groups} groups")
    for axis in range(2):
        if x.shape[2 + axis] + 2 * padding[axis] < dilation[axis] * (w.shape[2 + axis] - 1) + 1:
            raise ValueError(f"Kernel must fit the padded input, not {tuple(w.shape[2:])} in {tuple(x.shape[2:])}")


def convolved(x: torch.Tensor, w: torch.Tensor, stride: Sides, padding: Sides, dilation: Sides, formats: Formats,
              stream: Stream | None, groups: int) -> torch.Tensor:
    """The convolution, of checked shapes, the quickest way that serves; volumes have a stream where they are depthwise.
    """
    if groups > 1 and Depthwise.serves(x, w, groups, formats, stream):
        return Depthwise.apply(x, w, stride, padding, dilation, formats, stream if formats.stochastic else None)
    if groups > 1 and Grouped.serves(x, w, groups, formats, stride, stream):
        return Grouped.apply(x, w, stride, padding, dilation, formats, groups, stream if formats.stochastic else None)
    if groups > 1 and AlikeGroups.serves(x, formats):
        return AlikeGroups.apply(x, w, stride, padding, dilation, formats, groups)
    if groups > 1 and x.numel() and x.dim() == 4 and StackedGroups.serves(x, formats):
        return StackedGroups.apply(x, w, stride, padding, dilation, formats, groups)
    return Conv2d.apply(x, w, stride, padding, dilation, formats, stream, groups)
