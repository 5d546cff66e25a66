"""Convolutions in groups as stacked products, one for each group, in one call of the kernels.

They serve what :mod:`golden.nn.depthwise` and :mod:`golden.nn.grouped` do not: wide tiles, ``truncate`` and sums in
one accumulator, all without noise.
"""

from typing import Any

import numpy as np
import torch

from hbfp.format import HBFPFormat

from ..fast import aligned, patches, stack
from ..matmul import check_aligned
from . import again, unfold
from .conv_products import over_channels, over_pixels, together
from .formats import Formats
from .memory import array
from .once import unviewed
from .pairs import quick, whole
from .phases import phases
from .portable import on_host
from .record import watcher
from .unfold import Sides


class AlikeGroups(torch.autograd.Function):
    """Convolution in groups and its two gradients: the bits of :class:`golden.nn.conv.Conv2d`."""

    @staticmethod
    def serves(x: torch.Tensor, formats: Formats) -> bool:
        """Whether all groups can go through the kernels together."""
        return on_host(x) and x.numel() > 0 and watcher() is None and (quick(formats) or whole(formats))

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: Sides, padding: Sides, dilation: Sides,
                formats: Formats, groups: int) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (O, C / groups, kh, kw) -> (N, O, OH, OW), channels last in memory; or with depth.
        """
        ctx.save_for_backward(x, w)
        ctx.run = again.rule(formats, lambda a, b: AlikeGroups.apply(a, b, stride, padding, dilation, formats, groups))
        ctx.options = stride, padding, dilation, formats, groups
        ctx.last = unfold.channels_last(x.detach(), unfold.around(padding))
        return again.made(lambda: unviewed(output(ctx.last, w.detach(), stride, dilation, formats, groups)), x,
                          lambda: unfold.output_shape(x, w, stride, padding, dilation))

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        stride, _, *rest = ctx.options
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = input_gradient(g, w.detach(), x.shape, *ctx.options)
        if ctx.needs_input_grad[1]:
            gw = weight_gradient(ctx.last, g, tuple(w.shape[2:]), stride, *rest)
        return gx, gw, *[None] * 5


def output(last: torch.Tensor, w: torch.Tensor, stride: Sides, dilation: Sides, formats: Formats,
           groups: int) -> torch.Tensor:
    """Channels-last ``last``, padded, convolved with ``w`` (O, C / groups, kh, kw): (N, O, OH, OW)."""
    matrices = torch.stack([unfold.weight_matrix(part) for part in w.chunk(groups)])
    return _over_channels(last, matrices, formats.x, formats, tuple(w.shape[2:]), stride, dilation).movedim(-1, 1)


def input_gradient(g: torch.Tensor, w: torch.Tensor, shape: tuple[int, ...], stride: Sides, padding: Sides,
                   dilation: Sides, formats: Formats, groups: int) -> torch.Tensor:
    """(N, C, H, W)."""
    def own(phase):
        matrices = torch.stack([unfold.taps_matrix(part, phase) for part in w.chunk(groups)])
        return _over_channels(unfold.within(g, phase), matrices, formats.g, formats, phase.size,
                              (1,) * len(phase.size), phase.step)
    found = phases(w.shape[2:], shape[2:], stride, padding, dilation)
    return together(found, own, g, (shape[0], *shape[2:], shape[1])).movedim(-1, 1)


def weight_gradient(last: torch.Tensor, g: torch.Tensor, size: Sides, stride: Sides, dilation: Sides, formats: Formats,
                    groups: int) -> torch.Tensor:
    """(O, C / groups, kh, kw), of padded channels-last inputs and g (N, O, OH, OW)."""
    flat = unfold.channels_last(g, [0] * 2 * len(size))
    own = flat.reshape(-1, groups, g.shape[1] // groups).transpose(0, 1)          # (groups, pixels, O / groups)
    y, left = _products(last, own, formats.x, formats.g, formats, size, stride, dilation, turned=True)
    parts = [unfold.weights(each, size) for each in torch.from_numpy(y)]
    for i in left:
        parts[i] = over_pixels(last.chunk(groups, -1)[i].contiguous(), flat.chunk(groups, -1)[i].contiguous(), formats,
                               None, size, stride, dilation)
    return torch.cat(parts)


def _over_channels(last, matrices, fmt, formats, size, stride, dilation):
    """Patches of ``last`` times matrices (groups, K, O / groups): (N, OH, OW, O)."""
    groups = len(matrices)
    y, left = _products(last, matrices, fmt, formats.w, formats, size, stride, dilation)
    out = unfold.view(last, size, stride, dilation).shape[:last.dim() - 1]
    found = torch.from_numpy(y).transpose(0, 1).reshape(*out, -1).contiguous()
    for i in left:
        found.chunk(groups, -1)[i].copy_(over_channels(last.chunk(groups, -1)[i].contiguous(), matrices[i], fmt,
                                                       formats.w, formats, None, size, stride, dilation))
    return found


def _products(last, b, fmt, b_fmt, formats: Formats, size, stride, dilation, turned=False) -> tuple[np.ndarray, list]:
    """Patches of each group, or these turned, times ``b`` (groups, K, n): (groups, M, n), and groups that are left."""
    groups, channels = len(b), last.shape[-1] // len(b)
    places = patches.Patches(array(last), *unfold.taps(tuple(last.shape), size, stride, dilation), channels)
    if formats.accumulate != "aligned":
        return stack.patches_product(places, channels, array(b), _alike(fmt, b_fmt, formats.accumulate, groups),
                                     turned=turned), []
    check_aligned(fmt, b_fmt, -(-b.shape[1] // fmt.terms), formats.guard, formats.growth)
    return aligned.patches_stack(places, channels, array(b), fmt, b_fmt, formats.guard, turned=turned)


def _alike(fmt: HBFPFormat, b_fmt: HBFPFormat, sums: str, groups: int) -> stack.Formats:
    return stack.Formats([fmt] * groups, [b_fmt] * groups, [sums] * groups)
