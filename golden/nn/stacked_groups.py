"""Convolutions in groups on a GPU: one stack of products for all groups, the bits of a :class:`Conv2d` per group."""

from typing import Any

import torch

from . import again, converted, unfold
from .conv_products import together
from .converted import Stack
from .formats import Formats
from .once import unviewed
from .phases import phases


class StackedGroups(torch.autograd.Function):
    """Convolution in groups and its two gradients."""

    @staticmethod
    def serves(x: torch.Tensor, formats: Formats) -> bool:
        """Whether all groups can go through the kernels together."""
        return converted.takes(x, formats) and not formats.stochastic

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: tuple[int, int], padding: tuple[int, int],
                dilation: tuple[int, int], formats: Formats, groups: int) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (O, C / groups, kh, kw) -> (N, O, OH, OW), channels last in memory."""
        ctx.save_for_backward(x, w)
        ctx.run = again.rule(formats, lambda a, b: StackedGroups.apply(a, b, stride, padding, dilation, formats,
                                                                       groups))
        ctx.options, (ph, pw) = (stride, padding, dilation, formats, groups), padding
        ctx.last = unfold.channels_last(x.detach(), (pw, pw, ph, ph))
        matrices = w.detach().unflatten(0, (groups, -1)).permute(0, 3, 4, 2, 1).flatten(1, 3)
        view = unfold.view(ctx.last, tuple(w.shape[2:]), stride, dilation)
        return unviewed(_product(view, matrices, formats.x, formats.w, formats).permute(0, 3, 1, 2))

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        stride, padding, dilation, formats, groups = ctx.options
        size = tuple(w.shape[2:])
        gx = gw = None
        if ctx.needs_input_grad[0]:
            def own(phase):
                view = unfold.view(unfold.within(g, phase), phase.size, (1, 1), phase.step)
                taps = unfold.taps_of(w, phase).unflatten(0, (groups, -1))
                return _product(view, taps.permute(0, 3, 4, 1, 2).flatten(1, 3), formats.g, formats.w, formats)
            found = phases(size, x.shape[2:], stride, padding, dilation)
            gx = together(found, own, g, (x.shape[0], *x.shape[2:], x.shape[1])).permute(0, 3, 1, 2)
        if ctx.needs_input_grad[1]:
            view = unfold.view(ctx.last, size, stride, dilation)
            top = g.permute(0, 2, 3, 1).flatten(0, 2).unflatten(1, (groups, -1)).transpose(0, 1)
            y = converted.product(_stacked(view, formats.x, groups).lines(True), Stack(top, formats.g).lines(True),
                                  formats)
            gw = y.unflatten(1, (*size, -1)).permute(0, 4, 3, 1, 2).flatten(0, 1)
        return gx, gw, *[None] * 5


def _stacked(view, fmt, groups):
    """Patches (N, OH, OW, kh, kw, C) as matrices (pixels, K) of each group."""
    parts = view.unflatten(5, (groups, -1)).permute(5, 0, 1, 2, 3, 4, 6)
    return Stack(parts.reshape(groups, view.shape[:3].numel(), view.numel() // view.shape[:3].numel() // groups), fmt)


def _product(view, matrices, fmt, w_fmt, formats):
    """Patches (N, OH, OW, kh, kw, C) of each group times its own of ``matrices`` (groups, K, O): (N, OH, OW, all O)."""
    lines = _stacked(view, fmt, len(matrices)).lines(False), Stack(matrices, w_fmt).lines(True)
    return converted.product(*lines, formats).transpose(0, 1).reshape(*view.shape[:3], -1)
