"""Transposed convolution of images or volumes: the products of a convolution with input and output exchanged.

``y`` is what the gradient of the input is in a convolution, ``gx`` what its output is, ``gw`` the same.
"""

from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import torch

from ..noise import Stream
from . import again, alike_groups, conv_products, depthwise, grouped, unfold
from .conv_products import joined
from .formats import Formats
from .once import unviewed
from .unfold import Sides


@lru_cache(64)
def exchanged(formats: Formats) -> Formats:
    """The formats of the convolution whose products a transposed one has."""
    return replace(formats, x=formats.g, g=formats.x)


class Transposed(torch.autograd.Function):
    """Transposed convolution in groups and its two gradients; without noise, unless of each channel alone."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, sides: Sides, stride: Sides, padding: Sides,
                dilation: Sides, formats: Formats, groups: int, stream: Stream | None = None) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (C, O / groups, kh, kw) -> (N, O, sides ...); or with depth."""
        ctx.save_for_backward(x, w)
        ctx.run = again.rule(formats, lambda a, b: Transposed.apply(a, b, sides, stride, padding, dilation, formats,
                                                                    groups))
        ctx.way = _Way((stride, padding, dilation), exchanged(formats), groups, x, w, stream)
        shape = len(x), w.shape[1] * groups, *sides
        return again.made(lambda: unviewed(ctx.way.input_gradient(x.detach(), w.detach(), shape)), x, lambda: shape)

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        of_x, of_w = ctx.needs_input_grad[:2]
        drawn = ctx.way.draws(g, x, w, of_x, of_w)
        laid = ctx.way.laid(g)                            # both products take the same numbers, as a rule
        gx = ctx.way.output(g, w.detach(), x.shape[2:], drawn, laid) if of_x else None
        gw = ctx.way.weight_gradient(g, x.detach(), tuple(w.shape[2:]), drawn, laid) if of_w else None
        return gx, gw, *[None] * 7


class _Way:
    """How the three products of a convolution, of what the result of a transposed one is, go."""

    def __init__(self, geometry, formats, groups, x, w, stream):
        self.stride, self.padding, self.dilation = self.geometry = geometry
        self.formats, self.groups, self.stream = formats, groups, stream
        self.depthwise = w.shape[1] == 1 < groups and depthwise.Depthwise.serves(x, w, groups, formats, stream)
        self.grouped = groups > 1 and grouped.Grouped.serves(x, w, groups, formats)
        self.alike = groups > 1 and alike_groups.AlikeGroups.serves(x, formats)

    def input_gradient(self, g, w, shape):
        """(N, O, sides ...) of the transposed one's input."""
        if self.depthwise:
            matrices = depthwise.of_input_gradient(shape, w.shape[2:], *self.geometry, self.formats)
            return depthwise.input_gradient(g, w, shape, *self.geometry, self.formats,
                                            depthwise.draws(self.stream, self.groups, matrices))
        if self.grouped:
            return grouped.input_gradient(g, w, shape, *self.geometry, self.formats, self.groups)
        if self.alike:
            return alike_groups.input_gradient(g, w, shape, *self.geometry, self.formats, self.groups)
        own = shape[0], w.shape[1], *shape[2:]
        return joined([conv_products.input_gradient(top, part, own, *self.geometry, self.formats, None)
                       for top, part in zip(g.chunk(self.groups, 1), w.chunk(self.groups), strict=True)]).movedim(-1, 1)

    def draws(self, x, g, w, of_output, of_weights):
        """What the two other products draw; the last channel comes first, since each was a function of autograd."""
        matrices = depthwise.of_output(x, w, *self.geometry, self.formats) if of_output else []
        matrices += depthwise.of_weight_gradient(g, w.shape[2:], self.formats) if of_weights else []
        return depthwise.draws(self.stream, self.groups, matrices, last_first=True)

    def laid(self, x):
        """A function of padding that gives parts of ``x`` channels last, as :func:`unfold.channels_last`, made once."""
        parts = x.chunk(1 if self.depthwise or self.grouped or self.alike else self.groups, 1)
        return cache(lambda *padding: [unfold.channels_last(part, padding) for part in parts])

    def output(self, x, w, sides, drawn, laid):
        """(N, C, sides ...); pixels beyond come of padding of the output alone."""
        around = unfold.around(self.padding)
        if self.depthwise:
            y = depthwise.output(*laid(*around), w, self.stride, self.dilation, self.formats, drawn)
        elif self.grouped:
            y = grouped.output(x, w, *self.geometry, self.formats, self.groups)
        elif self.alike:
            y = alike_groups.output(*laid(*around), w, self.stride, self.dilation, self.formats, self.groups)
        else:
            y = joined([conv_products.over_channels(
                last, unfold.weight_matrix(own), self.formats.x, self.formats.w, self.formats, None, tuple(w.shape[2:]),
                self.stride, self.dilation)
                for last, own in zip(laid(*around), w.chunk(self.groups), strict=True)]).movedim(-1, 1)
        return y[(..., *(slice(side) for side in sides))]

    def weight_gradient(self, x, g, size, drawn, laid):
        """(C, O / groups, size ...)."""
        padding = self._around(x.shape[2:], g.shape[2:], size)
        if self.depthwise:
            return depthwise.weight_gradient(*laid(*padding), g, size, self.stride, self.dilation, self.formats, drawn)
        if self.grouped:
            last, = laid(*padding)
            return grouped.weight_gradient(last.movedim(-1, 1), g, size, self.stride, (0,) * len(size), self.dilation,
                                           self.formats, self.groups)
        if self.alike:
            return alike_groups.weight_gradient(*laid(*padding), g, size, self.stride, self.dilation, self.formats,
                                                self.groups)
        return joined([conv_products.over_pixels(
            last, unfold.channels_last(top, [0] * len(padding)), self.formats, None, size, self.stride, self.dilation)
            for last, top in zip(laid(*padding), g.chunk(self.groups, 1), strict=True)], 0)

    def _around(self, sides, pixels, size):
        """Padding with which patches of so many pixels reach all: what they do not would be further pixels."""
        padding: list[int] = []
        for side, count, k, s, p, d in zip(sides, pixels, size, *self.geometry, strict=True):
            padding = [p, (count - 1) * s + d * (k - 1) + 1 - side - p, *padding]
        return padding
