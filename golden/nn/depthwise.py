"""Convolutions of each channel alone, all channels in one call."""

from typing import Any

import torch

from ..fast import patches
from . import unfold
from .conv_products import together
from .formats import Formats
from .memory import array
from .once import once_differentiable, unviewed
from .phases import phases


class Depthwise(torch.autograd.Function):
    """Convolution of each channel alone, and its two gradients: the bits of a :class:`Conv2d` per channel."""

    @staticmethod
    def serves(x: torch.Tensor, w: torch.Tensor, groups: int, formats: Formats) -> bool:
        """Whether all channels can go through the kernels together."""
        return (groups == x.shape[1] == w.shape[0] and not formats.stochastic and not formats.x.square
                and not formats.w.square and not formats.g.square
                and unfold.compiled(x, (formats.x, formats.w, formats.g), formats, None))

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: tuple[int, int], padding: tuple[int, int],
                dilation: tuple[int, int], formats: Formats) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (C, 1, kh, kw) -> (N, C, OH, OW), channels last in memory."""
        ctx.save_for_backward(x, w)
        ctx.options = stride, padding, dilation, formats
        ph, pw = padding
        ctx.last = unfold.channels_last(x.detach(), (pw, pw, ph, ph))
        return unviewed(_per_channel(ctx.last, w.detach(), formats.x, formats.w, stride, dilation, formats.accumulate))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        stride, padding, dilation, formats = ctx.options
        size, c = tuple(w.shape[2:]), w.shape[0]
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = _input_gradient(g, w.detach(), x.shape, stride, padding, dilation, formats)
        if ctx.needs_input_grad[1]:
            top = array(unfold.channels_last(g, (0, 0, 0, 0)).reshape(-1, c))
            pixels, taps = unfold.taps(tuple(ctx.last.shape), size, stride, dilation)
            rows = patches.Patches(array(ctx.last), pixels, taps, c)
            other = patches.Values.of(*unfold.values(top, formats.g, None))
            y = patches.depthwise_turned(rows, formats.x, other, formats.accumulate)
            gw = torch.from_numpy(y).T.reshape(w.shape)
        return gx, gw, None, None, None, None


def _input_gradient(g, w, shape, stride, padding, dilation, formats):
    """(N, C, H, W)."""
    def own(phase):
        top, taps = unfold.within(g, phase), unfold.taps_of(w, phase)
        y = _per_channel(top, taps, formats.g, formats.w, (1, 1), phase.step, formats.accumulate)
        return y.permute(0, 2, 3, 1)
    found = phases(w.shape[2:], shape[2:], stride, padding, dilation)
    return together(found, own, g.new_zeros, (shape[0], *shape[2:], shape[1])).permute(0, 3, 1, 2)


def _per_channel(last, w, fmt, w_fmt, stride, dilation, sums):
    """Channels-last ``last``, each channel convolved with its own ``w`` (C, 1, kh, kw): (N, C, OH, OW)."""
    c, size = w.shape[0], tuple(w.shape[2:])
    n, oh, ow = unfold.view(last, size, stride, dilation).shape[:3]
    rows = patches.Patches(array(last), *unfold.taps(tuple(last.shape), size, stride, dilation), c)
    taps = array(w.reshape(c, -1).T.contiguous())
    y = patches.depthwise(rows, fmt, patches.Values.of(*unfold.values(taps, w_fmt, None)), sums)
    return torch.from_numpy(y).view(n, oh, ow, c).permute(0, 3, 1, 2)
