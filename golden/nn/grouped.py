"""Convolutions in groups of few channels: all groups in one call, with the bits of a convolution of each."""

import math
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np
import torch

from hbfp.design import FLOAT_SUMS

from ..fast import aligned, grouped, patches
from ..matmul import check_aligned
from ..noise import Stream
from . import again, alike_groups, conv_products, unfold
from .depthwise import Draws, Matrix, draws, rounds
from .formats import Formats
from .memory import array
from .once import unviewed
from .pairs import quick
from .phases import phases
from .unfold import Sides

#: Draws of products without noise.
NONE: Draws = repeat(None)
#: Most outputs of a group with which the weights' gradient is computed for all groups at once.
OUTPUTS = 16


class Grouped(torch.autograd.Function):
    """Convolution in groups and its two gradients: the bits of :class:`golden.nn.conv.Conv2d`.

    Each product goes through the kernels for all groups where they serve its shape, and group by group elsewhere; so
    does a group with numbers outside the range of the kernels. With noise all three products have to go together: each
    group draws for all of them before the next.
    """

    @staticmethod
    def serves(x: torch.Tensor, w: torch.Tensor, groups: int, formats: Formats, stride: Sides = (),
               stream: Any = None) -> bool:
        """Whether the formats are those of the kernels, and with noise the shape is, too."""
        roles = formats.x, formats.w, formats.g
        square = formats.x.square
        if not all(fmt.square == square for fmt in roles):
            return False
        if formats.stochastic:
            out, channels = w.shape[0] // groups, w.shape[1]
            return (not square and formats.accumulate in FLOAT_SUMS and isinstance(stream, Stream)
                    and unfold.compiled(x, roles, formats, stream) and rounds(formats)
                    and x.dim() == 4 and out <= OUTPUTS and all(step == 1 for step in stride)
                    and channels % formats.x.terms > 0 and out % formats.g.terms > 0)
        if not all(fmt.rounding == "rne" for fmt in roles):
            return False
        if formats.accumulate in FLOAT_SUMS:
            return unfold.compiled(x, roles, formats, None) and (
                not square or quick(formats) and rounds(formats))
        return (formats.mode == "hbfp" and unfold.integers(x, roles, formats)
                and rounds(formats))

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: Sides, padding: Sides, dilation: Sides,
                formats: Formats, groups: int, stream: Stream | None = None) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (O, C / groups, kh, kw) -> (N, O, OH, OW), channels last in memory; or with depth.
        """
        ctx.save_for_backward(x, w)
        ctx.run = again.rule(formats, lambda a, b: Grouped.apply(a, b, stride, padding, dilation, formats, groups))
        ctx.options, ctx.stream = (stride, padding, dilation, formats, groups), stream

        def make():
            shape = unfold.output_shape(x, w, stride, padding, dilation)
            drawn = draws(stream, groups, _matrices(shape, w[0].numel(), formats.x, w.shape[0] // groups, formats.w))
            return unviewed(output(x.detach(), w.detach(), stride, padding, dilation, formats, groups, drawn))
        return again.made(make, x, lambda: unfold.output_shape(x, w, stride, padding, dilation))

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = (each.detach() for each in ctx.saved_tensors)
        of_x, of_w = ctx.needs_input_grad[:2]
        stride, padding, dilation, formats, groups = ctx.options
        out = w.shape[0] // groups
        matrices: list[Matrix] = []
        if of_x:
            matrices += _matrices(x.shape, w[:out, 0].numel(), formats.g, w.shape[1], formats.w)
        if of_w:
            pixels = g[:, 0].numel()
            matrices += [Matrix(formats.g, out, pixels), Matrix(formats.x, w[0].numel(), pixels)]
        drawn = draws(ctx.stream, groups, matrices)
        gx = input_gradient(g, w, x.shape, stride, padding, dilation, formats, groups, drawn) if of_x else None
        size = tuple(w.shape[2:])
        gw = weight_gradient(x, g, size, stride, padding, dilation, formats, groups, drawn) if of_w else None
        return gx, gw, *[None] * 6


def _matrices(shape, length, fmt, columns, w_fmt):
    """What a group converts for a product that is images of ``shape``."""
    return [Matrix(fmt, shape[0] * math.prod(shape[2:]), length), Matrix(w_fmt, columns, length)]


def output(x: torch.Tensor, w: torch.Tensor, stride: Sides, padding: Sides, dilation: Sides, formats: Formats,
           groups: int, drawn: Draws = NONE) -> torch.Tensor:
    """(N, O, OH, OW)."""
    size = tuple(w.shape[2:])

    def each(i, stream=None):
        last = unfold.channels_last(x.chunk(groups, 1)[i], unfold.around(padding))
        return conv_products.over_channels(last, unfold.weight_matrix(w.chunk(groups)[i]), formats.x, formats.w,
                                           formats, stream, size, stride, dilation)
    if w.shape[1] % formats.x.terms == 0 and not formats.x.square or stride[-1] > 1:
        if _stacked(formats):
            return alike_groups.output(unfold.channels_last(x, unfold.around(padding)), w, stride, dilation, formats,
                                       groups)
        return torch.cat([each(i) for i in range(groups)], -1).movedim(-1, 1)
    planes = patches.planes(array(x), [side + 2 * p for side, p in zip(x.shape[2:], padding, strict=True)], padding)
    return _together(planes, unfold.weight_matrix(w), formats.x, formats, groups, size, stride, dilation,
                     each, drawn).movedim(-1, 1)


def input_gradient(g: torch.Tensor, w: torch.Tensor, shape: tuple[int, ...], stride: Sides, padding: Sides,
                   dilation: Sides, formats: Formats, groups: int, drawn: Draws = NONE) -> torch.Tensor:
    """(N, C, H, W)."""
    channels, out, size = w.shape[1], w.shape[0] // groups, tuple(w.shape[2:])
    own = shape[0], channels, *shape[2:]

    def each(i):
        return conv_products.input_gradient(g.chunk(groups, 1)[i], w.chunk(groups)[i], own, stride, padding, dilation,
                                            formats, None)
    if out % formats.g.terms == 0 and not formats.g.square:
        if _stacked(formats):
            return alike_groups.input_gradient(g, w, shape, stride, padding, dilation, formats, groups)
        return torch.cat([each(i) for i in range(groups)], -1).movedim(-1, 1)

    def together(phase):
        geometry = phase.size, (1,) * len(size), phase.step
        planes = patches.planes(array(g), phase.sides, phase.corner)
        taps = unfold.taps_of(w, phase)
        turned = torch.cat([unfold.weight_matrix(part.transpose(0, 1)) for part in taps.chunk(groups)], 1)

        def alone(i, stream):
            top, part = g.chunk(groups, 1)[i], w.chunk(groups)[i]
            return conv_products.over_channels(unfold.within(top, phase), unfold.taps_matrix(part, phase), formats.g,
                                               formats.w, formats, stream, *geometry)
        return _together(planes, turned, formats.g, formats, groups, *geometry, alone, drawn)
    found = phases(size, shape[2:], stride, padding, dilation)
    y = conv_products.together(found, together, g, (shape[0], *shape[2:], channels * groups))
    return y.movedim(-1, 1)


def weight_gradient(x: torch.Tensor, g: torch.Tensor, size: Sides, stride: Sides, padding: Sides, dilation: Sides,
                    formats: Formats, groups: int, drawn: Draws = NONE) -> torch.Tensor:
    """(O, C / groups, kh, kw)."""
    around, none, of_g, of_x = unfold.around(padding), [0] * 2 * len(size), next(drawn), next(drawn)
    if g.shape[1] // groups <= OUTPUTS:
        last, flat = unfold.channels_last(x, around), unfold.channels_last(g, none).reshape(-1, g.shape[1])
        places = patches.Patches(array(last), *unfold.taps(tuple(last.shape), size, stride, dilation), x.shape[1])
        other, sums, whole, invalid = _operand(array(flat), formats.g, formats.x, formats, groups, of_g)
        y, odd = grouped.turned_product(places, formats.x, other, groups, sums, whole, of_x)
        if not odd and not invalid.any():
            parts = torch.from_numpy(y).unflatten(-1, (groups, -1)).permute(0, 3, 2, 1)    # (taps, C, groups, out)
            return unfold.weights(parts.flatten(2), size)
    if _stacked(formats):
        return alike_groups.weight_gradient(unfold.channels_last(x, around), g, size, stride, dilation, formats, groups)
    found = []
    for i, (own, top) in enumerate(zip(x.chunk(groups, 1), g.chunk(groups, 1), strict=True)):
        last, flat = unfold.channels_last(own, around), unfold.channels_last(top, none)
        found.append(conv_products.over_pixels(last, flat, formats, _alone(of_g or of_x, i, formats), size, stride,
                                               dilation))
    return torch.cat(found)


def _together(planes, matrix, fmt, formats, groups, size, stride, dilation, each, drawn):
    """Patches of planes times ``matrix`` (K, O), (N, OH, OW, O); ``each`` makes a group that the kernel leaves."""
    own, of_w = next(drawn), next(drawn)
    rows, out, offsets = _places(planes.shape, size, stride, dilation, groups)
    other, sums, whole, invalid = _operand(array(matrix.contiguous()), formats.w, fmt, formats, groups, of_w)
    y, odd = grouped.product(planes, rows, out[-1], offsets, fmt, other, groups, sums, whole, own)
    found = torch.from_numpy(y).view(len(planes), *out, y.shape[1])
    for i in (odd | invalid.reshape(groups, -1).any(1)).nonzero()[0]:
        found.chunk(groups, -1)[i].copy_(each(i, _alone(own or of_w, i, formats)))
    return found


def _alone(drawing, i, formats):
    """Generators from where group i draws on, if it does."""
    return None if drawing is None else drawing.alone(i, Stream(1, formats.lanes))


def _stacked(formats):
    """Whether groups that the kernels here do not serve are products of one call, rather than alone."""
    return formats.x.square or formats.accumulate not in FLOAT_SUMS


def _operand(x, fmt, other, formats, groups, drawing):
    """(K, O), converted, the kernel's kind of sums, what ``aligned`` ones take, and columns that they do not hold."""
    if formats.accumulate in FLOAT_SUMS:
        return grouped.encoded(x, fmt, groups, drawing), formats.accumulate, None, np.zeros(x.shape[1], bool)
    check_aligned(other, fmt, -(-len(x) // fmt.terms), formats.guard, formats.growth)
    values, whole, invalid = aligned.Whole.of(x, fmt, other, formats.guard)
    return values, "fp32", whole, invalid


@lru_cache(64)
def _places(shape, size, stride, dilation, groups):
    """Where rows of output pixels start in planes of ``shape``, the output's sides, and the elements of a patch."""
    n, c, *sides = shape
    volume = math.prod(sides)
    out = [(side - d * (k - 1) - 1) // s + 1 for side, k, s, d in zip(sides, size, stride, dilation, strict=True)]
    # As of channels-last images of one channel; of a row of pixels the first.
    pixels, taps = unfold.offsets((n, *sides, 1), size, stride, dilation, 1)
    rows = (pixels.reshape(n, *out)[..., 0] + np.arange(n).reshape(n, *[1] * (len(out) - 1)) * volume * (c - 1)).ravel()
    return rows, out, (taps[:, None] + np.arange(c // groups) * volume).ravel()
