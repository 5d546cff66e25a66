"""Convolutions of each channel alone, all channels in one call."""

from typing import Any

import torch

from ..fast import patches
from . import again, unfold
from .conv_products import together
from .formats import Formats
from .memory import array
from .once import unviewed
from .phases import phases
from .unfold import Sides


class Depthwise(torch.autograd.Function):
    """Convolution of each channel alone, and its two gradients: the bits of a :class:`Conv2d` per channel."""

    @staticmethod
    def serves(x: torch.Tensor, w: torch.Tensor, groups: int, formats: Formats) -> bool:
        """Whether all channels can go through the kernels together."""
        return (groups == x.shape[1] == w.shape[0] and not formats.stochastic and not formats.x.square
                and not formats.w.square and not formats.g.square
                and unfold.compiled(x, (formats.x, formats.w, formats.g), formats, None))

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: Sides, padding: Sides, dilation: Sides,
                formats: Formats) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (C, 1, kh, kw) -> (N, C, OH, OW), channels last in memory; or with depth."""
        ctx.save_for_backward(x, w)
        ctx.run = again.rule(formats, lambda a, b: Depthwise.apply(a, b, stride, padding, dilation, formats))
        ctx.options = stride, padding, dilation, formats
        ctx.last = unfold.channels_last(x.detach(), unfold.around(padding))
        return again.made(lambda: unviewed(output(ctx.last, w.detach(), stride, dilation, formats)), x,
                          lambda: unfold.output_shape(x, w, stride, padding, dilation))

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        stride, padding, dilation, formats = ctx.options
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = input_gradient(g, w.detach(), x.shape, stride, padding, dilation, formats)
        if ctx.needs_input_grad[1]:
            gw = weight_gradient(ctx.last, g, tuple(w.shape[2:]), stride, dilation, formats)
        return gx, gw, None, None, None, None


def output(last: torch.Tensor, w: torch.Tensor, stride: Sides, dilation: Sides, formats: Formats) -> torch.Tensor:
    """Channels-last ``last``, padded, each channel convolved with its own ``w`` (C, 1, kh, kw): (N, C, OH, OW)."""
    return _per_channel(last, w, formats.x, formats, stride, dilation)


def input_gradient(g: torch.Tensor, w: torch.Tensor, shape: tuple[int, ...], stride: Sides, padding: Sides,
                   dilation: Sides, formats: Formats) -> torch.Tensor:
    """(N, C, H, W)."""
    def own(phase):
        top, taps = unfold.within(g, phase), unfold.taps_of(w, phase)
        return _per_channel(top, taps, formats.g, formats, (1,) * len(phase.size), phase.step).movedim(1, -1)
    found = phases(w.shape[2:], shape[2:], stride, padding, dilation)
    return together(found, own, g.new_zeros, (shape[0], *shape[2:], shape[1])).movedim(-1, 1)


def weight_gradient(last: torch.Tensor, g: torch.Tensor, size: Sides, stride: Sides, dilation: Sides,
                    formats: Formats) -> torch.Tensor:
    """(C, 1, kh, kw), of padded channels-last inputs and g (N, C, OH, OW)."""
    c = g.shape[1]
    top = array(unfold.channels_last(g, [0] * 2 * len(size)).reshape(-1, c))
    rows = patches.Patches(array(last), *unfold.taps(tuple(last.shape), size, stride, dilation), c)
    other = patches.Values.of(*unfold.values(top, formats.g, None))
    return unfold.weights(torch.from_numpy(patches.depthwise_turned(rows, formats.x, other, formats.accumulate)), size)


def _per_channel(last, w, fmt, formats, stride, dilation):
    """Channels-last ``last``, each channel convolved with its own ``w`` (C, 1, kh, kw): (N, C, OH, OW)."""
    size = tuple(w.shape[2:])
    out = unfold.view(last, size, stride, dilation).shape[:last.dim() - 1]
    rows = patches.Patches(array(last), *unfold.taps(tuple(last.shape), size, stride, dilation), len(w))
    other = patches.Values.of(*unfold.values(array(unfold.weight_matrix(w)), formats.w, None))
    y = patches.depthwise(rows, fmt, other, formats.accumulate)
    return torch.from_numpy(y).view(*out, len(w)).movedim(-1, 1)
