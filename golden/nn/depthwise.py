"""Convolutions of each channel alone, all channels in one call."""

from collections.abc import Iterator
from itertools import repeat
from math import prod
from typing import Any

import torch

from hbfp.design import FLOAT_SUMS

from ..fast import depthwise, patches
from ..fast.depthwise import Drawing, Matrix
from ..matmul import check_aligned
from ..noise import Stream
from . import again, conv_products, unfold
from .conv_products import together
from .formats import Formats
from .memory import array
from .once import unviewed
from .phases import phases
from .unfold import Sides

#: What each matrix of a product draws from, in the order of :func:`output`, :func:`input_gradient` and so on.
Draws = Iterator[Drawing | None]


class Depthwise(torch.autograd.Function):
    """Convolution of each channel alone, and its two gradients: the bits of a :class:`Conv2d` per channel."""

    @staticmethod
    def serves(x: torch.Tensor, w: torch.Tensor, groups: int, formats: Formats, stream: Any = None) -> bool:
        """Whether all channels can go through the kernels together."""
        roles = formats.x, formats.w, formats.g
        if not groups == x.shape[1] == w.shape[0] or formats.mode != "hbfp":
            return False
        if formats.stochastic and not isinstance(stream, Stream):
            return False
        square, whole = any(fmt.square for fmt in roles), formats.accumulate not in FLOAT_SUMS
        if square + whole + formats.stochastic > 1:
            return False
        if whole and not unfold.integers(x, roles, formats) or not (
                whole or unfold.compiled(x, roles, formats, stream)):
            return False
        return not (square or whole or formats.stochastic) or rounds(formats)

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: Sides, padding: Sides, dilation: Sides,
                formats: Formats, stream: Stream | None = None) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (C, 1, kh, kw) -> (N, C, OH, OW), channels last in memory; or with depth."""
        ctx.save_for_backward(x, w)
        ctx.run = again.rule(formats, lambda a, b: Depthwise.apply(a, b, stride, padding, dilation, formats))
        ctx.options, ctx.stream = (stride, padding, dilation, formats), stream
        ctx.last = unfold.channels_last(x.detach(), unfold.around(padding))

        def make():
            matrices = of_output(x, w, stride, padding, dilation, formats)
            return unviewed(output(ctx.last, w.detach(), stride, dilation, formats, draws(stream, len(w), matrices)))
        return again.made(make, x, lambda: unfold.output_shape(x, w, stride, padding, dilation))

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        stride, padding, dilation, formats = ctx.options
        size, (of_x, of_w) = tuple(w.shape[2:]), ctx.needs_input_grad[:2]
        g = unfold.channels_last(g, [0] * 2 * len(size)).movedim(-1, 1)               # once for both
        matrices = of_input_gradient(x.shape, size, stride, padding, dilation, formats) if of_x else []
        matrices += of_weight_gradient(g, size, formats) if of_w else []
        # Volumes are a function of autograd for each channel, of which the last comes first.
        drawn = draws(ctx.stream, len(w), matrices, last_first=len(size) == 3)
        gx = input_gradient(g, w.detach(), x.shape, stride, padding, dilation, formats, drawn) if of_x else None
        gw = weight_gradient(ctx.last, g, size, stride, dilation, formats, drawn) if of_w else None
        return gx, gw, *[None] * 5


def rounds(formats: Formats) -> bool:
    """Whether the kernels for channels and groups round the operands of all three products, and hold their sums."""
    guard = 0 if formats.accumulate in FLOAT_SUMS else formats.guard
    return all(depthwise.rounds(*pair, guard) for pair in
               ((formats.x, formats.w), (formats.g, formats.w), (formats.x, formats.g)))


def draws(stream: Stream | None, channels: int, matrices: list[Matrix], *, last_first: bool = False) -> Draws:
    """How matrices draw, which all channels convert, one channel after the other."""
    return repeat(None) if stream is None else iter(depthwise.turns(stream, channels, matrices, last_first=last_first))


def of_output(x: torch.Tensor, w: torch.Tensor, stride: Sides, padding: Sides, dilation: Sides,
              formats: Formats) -> list[Matrix]:
    """What a channel converts, in this order, in :func:`output`."""
    n, _, *sides = unfold.output_shape(x, w, stride, padding, dilation)
    taps = prod(w.shape[2:])
    return [Matrix(formats.x, n * prod(sides), taps), Matrix(formats.w, 1, taps)]


def output(last: torch.Tensor, w: torch.Tensor, stride: Sides, dilation: Sides, formats: Formats,
           drawn: Draws) -> torch.Tensor:
    """Channels-last ``last``, padded, each channel convolved with its own ``w`` (C, 1, kh, kw): (N, C, OH, OW)."""
    return _per_channel(last, w, formats.x, formats, stride, dilation, drawn)


def of_input_gradient(shape: tuple[int, ...], size: Sides, stride: Sides, padding: Sides, dilation: Sides,
                      formats: Formats) -> list[Matrix]:
    """As :func:`of_output`, of :func:`input_gradient`."""
    return [matrix for phase in phases(size, shape[2:], stride, padding, dilation) if not phase.empty for matrix in
            (Matrix(formats.g, shape[0] * prod(line.count for line in phase.lines), prod(phase.size)),
             Matrix(formats.w, 1, prod(phase.size)))]


def input_gradient(g: torch.Tensor, w: torch.Tensor, shape: tuple[int, ...], stride: Sides, padding: Sides,
                   dilation: Sides, formats: Formats, drawn: Draws) -> torch.Tensor:
    """(N, C, H, W)."""
    def own(phase):
        top, taps = unfold.within(g, phase), unfold.taps_of(w, phase)
        return _per_channel(top, taps, formats.g, formats, (1,) * len(phase.size), phase.step, drawn).movedim(1, -1)
    found = phases(w.shape[2:], shape[2:], stride, padding, dilation)
    return together(found, own, g, (shape[0], *shape[2:], shape[1])).movedim(-1, 1)


def of_weight_gradient(g: torch.Tensor, size: Sides, formats: Formats) -> list[Matrix]:
    """As :func:`of_output`, of :func:`weight_gradient`."""
    pixels = g[:, 0].numel()
    return [Matrix(formats.g, 1, pixels), Matrix(formats.x, prod(size), pixels)]


def weight_gradient(last: torch.Tensor, g: torch.Tensor, size: Sides, stride: Sides, dilation: Sides, formats: Formats,
                    drawn: Draws) -> torch.Tensor:
    """(C, 1, kh, kw), of padded channels-last inputs and g (N, C, OH, OW)."""
    top = unfold.channels_last(g, [0] * 2 * len(size))
    y, left = _product(last, array(top.reshape(-1, g.shape[1])), formats.x, formats.g, formats, size, stride, dilation,
                       drawn, turned=True)
    gw = unfold.weights(y, size)
    for i in left:
        gw[i:i + 1] = conv_products.over_pixels(_alone(last, i), _alone(top, i), formats, None, size, stride, dilation)
    return gw


def _per_channel(last, w, fmt, formats, stride, dilation, drawn):
    """Channels-last ``last``, each channel convolved with its own ``w`` (C, 1, kh, kw): (N, C, OH, OW)."""
    size = tuple(w.shape[2:])
    matrix = unfold.weight_matrix(w)
    y, left = _product(last, array(matrix), fmt, formats.w, formats, size, stride, dilation, drawn)
    y = y.view(*unfold.view(last, size, stride, dilation).shape[:last.dim() - 1], len(w))
    for i in left:
        y[..., i:i + 1] = conv_products.over_channels(_alone(last, i), _alone(matrix, i), fmt, formats.w, formats, None,
                                                      size, stride, dilation)
    return y.movedim(-1, 1)


def _alone(tensor, i):
    """One channel of what has them last."""
    return tensor[..., i:i + 1].contiguous()


def _product(last, b, fmt, b_fmt, formats, size, stride, dilation, drawn, turned=False) -> tuple[torch.Tensor, list]:
    """Each channel's patches, or these turned, times its column of ``b``, and channels that are left to others."""
    rows = patches.Patches(array(last), *unfold.taps(tuple(last.shape), size, stride, dilation), b.shape[1])
    if formats.accumulate not in FLOAT_SUMS:
        check_aligned(fmt, b_fmt, -(-len(b) // fmt.terms), formats.guard, formats.growth)
        y, left = depthwise.whole_product(rows, fmt, b, b_fmt, formats.guard, turned=turned)
        return torch.from_numpy(y), left
    if turned:                                                                        # b draws first
        other = depthwise.encoded(b, b_fmt, next(drawn))
        own = next(drawn)
    else:
        own = next(drawn)
        other = depthwise.encoded(b, b_fmt, next(drawn))
    return torch.from_numpy(depthwise.product(rows, fmt, other, own, formats.accumulate, turned=turned)), []
