"""Convolutions in groups of few channels: all groups in one call, with the bits of a convolution of each."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from ..fast import grouped, patches
from . import conv_products, unfold
from .formats import Formats
from .memory import array
from .once import once_differentiable, unviewed
from .phases import phases

#: Most outputs of a group with which the weights' gradient is computed for all groups at once.
OUTPUTS = 16


class Grouped(torch.autograd.Function):
    """Convolution in groups and its two gradients: the bits of :class:`golden.nn.conv.Conv2d`.

    Each product goes through the kernels for all groups where they serve its shape, and group by group elsewhere; so
    does a group with numbers outside the range of the kernels.
    """

    @staticmethod
    def serves(x: torch.Tensor, w: torch.Tensor, groups: int, formats: Formats) -> bool:
        """Whether the formats are those of the kernels."""
        roles = formats.x, formats.w, formats.g
        return (all(fmt.rounding == "rne" and not fmt.square for fmt in roles)
                and unfold.compiled(x, roles, formats, None))

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: tuple[int, int], padding: tuple[int, int],
                dilation: tuple[int, int], formats: Formats, groups: int) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (O, C / groups, kh, kw) -> (N, O, OH, OW), channels last in memory."""
        ctx.save_for_backward(x, w)
        ctx.options = stride, padding, dilation, formats, groups
        x, w, size = x.detach(), w.detach(), tuple(w.shape[2:])

        def each(i):
            last = unfold.channels_last(x.chunk(groups, 1)[i], (padding[1], padding[1], padding[0], padding[0]))
            matrix = unfold.weight_matrix(w.chunk(groups)[i])
            return conv_products.over_channels(last, matrix, formats.x, formats.w, formats, None, size, stride,
                                               dilation)
        if w.shape[1] % formats.x.terms == 0 or stride[1] > 1:
            y = torch.cat([each(i) for i in range(groups)], -1)
        else:
            sides = x.shape[2] + 2 * padding[0], x.shape[3] + 2 * padding[1]
            planes = patches.planes(array(x), sides, padding)
            y = _together(planes, unfold.weight_matrix(w), formats.x, formats, groups, size, stride, dilation, each)
        return unviewed(y.permute(0, 3, 1, 2))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        gx = _input_gradient(g, *ctx.saved_tensors, *ctx.options) if ctx.needs_input_grad[0] else None
        gw = _weight_gradient(g, *ctx.saved_tensors, *ctx.options) if ctx.needs_input_grad[1] else None
        return gx, gw, None, None, None, None, None


def _input_gradient(g, x, w, stride, padding, dilation, formats, groups):
    """(N, C, H, W)."""
    channels, out, size = w.shape[1], w.shape[0] // groups, tuple(w.shape[2:])
    shape = x.shape[0], channels, *x.shape[2:]

    def each(i):
        return conv_products.input_gradient(g.chunk(groups, 1)[i], w.chunk(groups)[i], shape, stride, padding, dilation,
                                            formats, None)
    if out % formats.g.terms == 0:
        return torch.cat([each(i) for i in range(groups)], -1).permute(0, 3, 1, 2)

    def together(phase):
        planes = patches.planes(array(g), phase.sides, phase.corner)
        taps = unfold.taps_of(w, phase).unflatten(0, (groups, out))
        turned = taps.permute(3, 4, 1, 0, 2).reshape(-1, groups * channels)

        def alone(i):
            top, own = g.chunk(groups, 1)[i], w.chunk(groups)[i]
            return conv_products.over_channels(unfold.within(top, phase), unfold.taps_matrix(own, phase), formats.g,
                                               formats.w, formats, None, phase.size, (1, 1), phase.step)
        return _together(planes, turned, formats.g, formats, groups, phase.size, (1, 1), phase.step, alone)
    found = phases(size, shape[2:], stride, padding, dilation)
    y = conv_products.together(found, together, g.new_zeros, (x.shape[0], *x.shape[2:], x.shape[1]))
    return y.permute(0, 3, 1, 2)


def _weight_gradient(g, x, w, stride, padding, dilation, formats, groups):
    """(O, C / groups, kh, kw)."""
    out, size, sides = w.shape[0] // groups, tuple(w.shape[2:]), (padding[1], padding[1], padding[0], padding[0])
    if out <= OUTPUTS:
        last, flat = unfold.channels_last(x, sides), unfold.channels_last(g, (0, 0, 0, 0)).reshape(-1, w.shape[0])
        places = patches.Patches(array(last), *unfold.taps(tuple(last.shape), size, stride, dilation), x.shape[1])
        other = patches.Values.of(*unfold.values(array(flat), formats.g, None))
        y, odd = grouped.turned_product(places, formats.x, other, groups, formats.accumulate)
        if not odd:
            parts = torch.from_numpy(y).unflatten(0, size).unflatten(-1, (groups, -1))    # (kh, kw, out, groups, C)
            return parts.permute(3, 2, 4, 0, 1).reshape(w.shape)
    found = []
    for own, top in zip(x.chunk(groups, 1), g.chunk(groups, 1), strict=True):
        last, flat = unfold.channels_last(own, sides), unfold.channels_last(top, (0, 0, 0, 0))
        found.append(conv_products.over_pixels(last, flat, formats, None, size, stride, dilation))
    return torch.cat(found, -1).permute(3, 2, 0, 1)


def _together(planes, matrix, fmt, formats, groups, size, stride, dilation, each):
    """Patches of planes times ``matrix`` (K, O), (N, OH, OW, O); ``each`` makes a group that the kernel leaves."""
    rows, width, offsets = _places(planes.shape, size, stride, dilation, groups)
    other = patches.Values.of(*unfold.values(array(matrix.contiguous()), formats.w, None))
    y, odd = grouped.product(planes, rows, width, offsets, fmt, other, groups, formats.accumulate)
    found = torch.from_numpy(y).view(len(planes), -1, width, y.shape[1])
    for i in odd.nonzero()[0]:
        found.chunk(groups, -1)[i].copy_(each(i))
    return found


@lru_cache(64)
def _places(shape, size, stride, dilation, groups):
    """Where rows of output pixels start in planes of ``shape``, pixels of a row, and the elements of a patch."""
    n, c, h, w = shape
    high, wide = ((side - d * (k - 1) - 1) // s + 1
                  for side, k, s, d in zip((h, w), size, stride, dilation, strict=True))
    rows = np.arange(n)[:, None] * (c * h * w) + np.arange(high) * (stride[0] * w)
    taps = np.arange(size[0])[:, None] * (dilation[0] * w) + np.arange(size[1]) * dilation[1]
    return rows.ravel(), wide, (taps[:, :, None] + np.arange(c // groups) * (h * w)).ravel()
