"""The three products of a convolution of images or volumes as matrix products in HBFP.

The law: with K in the order (kernel row, kernel column, channel), of volumes (kernel row, column, depth, channel),

- ``y  = patches(x) @ w``, patches (pixels, K), w (K, O);
- ``gx = patches(g) @ w turned`` for each phase of the stride, K over its taps and the output channels;
- ``gw = patches(x)^T @ g``, reduced over the output pixels;

each as :func:`golden.matmul.matmul` gives it. Where blocks ``(1, B)`` fit the channels an element
falls into the same block in every patch, so it is converted once and the patches are never built.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from hbfp.format import HBFPFormat

from ..fast import lanes, patches, products, scratch
from ..noise import Stream
from . import converted, integers, portable, shared, strided, unfold
from .formats import Formats
from .memory import array
from .phases import Phase, phases
from .placed import laid
from .portable import on_host
from .products import Operand, pieces_of, product
from .unfold import Sides


def _drawn(rows, columns, fmt):
    """Numbers that a stochastic conversion of a matrix takes, padding included."""
    high, wide = fmt.block
    return -(-rows // high) * high * -(-columns // wide) * wide


def over_channels(x: torch.Tensor, w: Any, fmt: HBFPFormat, w_fmt: HBFPFormat, formats: Formats, stream: Stream | None,
                  size: Sides, stride: Sides, dilation: Sides, kept: Any = None) -> torch.Tensor:
    """Patches of channels-last ``x`` times ``w`` (K, O), of which ``kept`` may be the conversion: (N, OH, OW, O)."""
    view, c = unfold.view(x, size, stride, dilation), x.shape[-1]
    out = view.shape[:x.dim() - 1]
    once = c % fmt.terms == 0 and not fmt.square and not w_fmt.square
    if unfold.compiled(x, (fmt, w_fmt), formats, stream) and once:
        a, a_span = unfold.encoded(array(x.view(-1, c)), fmt, stream)
        b, b_span = kept or unfold.encoded(array(w), w_fmt, stream, 0)
        rows, blocks = unfold.offsets(tuple(x.shape), size, stride, dilation, fmt.terms)
        y = products.multiply(a, b, fmt, w_fmt, a_span, b_span, rows=rows, blocks=blocks, sums=formats.accumulate)
        return torch.from_numpy(y).view(*out, -1)
    if unfold.compiled(x, (fmt, w_fmt), formats, stream):
        rows, draws = unfold.patch_rows(x, size, stride, dilation), unfold.draws(fmt, stream)
        later = draws and lanes.Resumed(draws, _drawn(rows.pixels, rows.columns, fmt))    # the patches draw first
        b, b_span = kept or unfold.encoded(array(w), w_fmt, later or stream, 0)
        y = patches.product(rows, fmt, patches.Values.of(b, w_fmt, b_span), draws, formats.accumulate)
        if later is not None:
            draws.state[:] = later.state
        return torch.from_numpy(y).view(*out, -1)
    if once and unfold.integers(x, (fmt, w_fmt), formats):
        y = integers.over_channels(x, w, fmt, w_fmt, formats, size, stride, dilation)
        if y is not None:
            return y.view(*out, -1)
    if once and converted.takes(x, formats):
        y = _converted_once(x, w, fmt, w_fmt, formats, stream, size, stride, dilation)
    elif once and unfold.draws(fmt, stream) is not None:
        y = _drawn_once(x, w, fmt, w_fmt, formats, stream, size, stride, dilation)
    elif (lines := _in_place(x, view, fmt, formats, size, stride, dilation)) is not None:
        y = converted.product(lines, Operand(w, w_fmt, stream).stack(0).lines(True), formats)[0]
    else:
        matrix = view.reshape(out.numel(), view.shape[len(out):].numel())
        own = laid(stream, lambda numbers: unfold.view(numbers, size, stride, dilation))
        y = product(Operand(matrix, fmt, own).along(-1), Operand(w, w_fmt, stream).along(0), formats)
    return y.view(*out, w.shape[1])


def _cut(shape, size, stride, dilation):
    """A function that makes matrices of patches of what belongs to the pixels of channels-last ``shape``."""
    def cut(tensor):
        view, dims = unfold.view(tensor.reshape(*shape[:-1], -1).contiguous(), size, stride, dilation), len(shape) - 1
        return view.reshape(view.shape[:dims].numel(), view.shape[dims:].numel())
    return cut


def _in_place(x, view, fmt, formats, size, stride, dilation, *, down=False):
    """Lines of patches that a GPU converts from where the elements of ``x`` lie, ``view`` of it; else None."""
    if not converted.takes(x, formats) or fmt.rounding == "stochastic" or view.numel() == x.numel():
        return None
    places = unfold.places(tuple(x.shape), size, stride, dilation, x.device)
    return converted.patches(x, fmt, places, down=down)


def _converted_once(x, w, fmt, w_fmt, formats, stream, size, stride, dilation):
    """The product on a GPU: elements of channels-last ``x`` are converted, and then laid out as patches."""
    matrix = x.view(1, -1, x.shape[-1])
    noise = converted.drawn(matrix[0], fmt, stream, -1)
    a = converted.Stack(matrix, fmt, None if noise is None else noise[None]).lines(False)
    b = Operand(w, w_fmt, stream).stack(0).lines(True)
    if math.prod(size) > 1 or max(stride) > 1:         # else a patch is a pixel
        a = converted.gathered(a, _cut(x.shape, size, stride, dilation))
    return converted.product(a, b, formats)[0]


def _drawn_once(x, w, fmt, w_fmt, formats, stream, size, stride, dilation):
    """The product in torch's operations, with noise drawn for elements of channels-last ``x``, not of its patches."""
    cut = _cut(x.shape, size, stride, dilation)
    a = pieces_of(x.view(-1, x.shape[-1]), fmt, stream, -1)
    a = replace(a, mantissa=cut(a.mantissa), exponent=cut(a.exponent), invalid=cut(a.invalid))
    return portable.product(a, pieces_of(w, w_fmt, stream, 0), formats.accumulate, guard=formats.guard,
                            growth=formats.growth)


def over_pixels(x: torch.Tensor, g: torch.Tensor, formats: Formats, stream: Stream | None, size: Sides, stride: Sides,
                dilation: Sides) -> torch.Tensor:
    """Patches of ``x``, turned, times ``g`` (N, OH, OW, O): gradient (O, C, size ...) of the weights."""
    return unfold.weights(_over_pixels(x, g, formats, stream, size, stride, dilation), size)


def _over_pixels(x, g, formats, stream, size, stride, dilation):
    """(K, O)."""
    found = shared.weight_gradient(x, g, formats, size, stride, dilation)
    if found is not None:
        return torch.from_numpy(found)
    view, dims = unfold.view(x, size, stride, dilation), x.dim() - 1
    pixels = view.shape[:dims].numel()
    flat = g.reshape(pixels, g.shape[-1])
    if unfold.compiled(x, (formats.x, formats.g), formats, stream):
        b, b_span = unfold.encoded(array(flat), formats.g, stream, 0)
        draws = unfold.draws(formats.x, stream)
        rows = (unfold.plane_columns if draws is not None and not formats.x.square else unfold.patch_rows)(
            x, size, stride, dilation)
        y = patches.turned_product(rows, formats.x, patches.Values.of(b, formats.g, b_span), draws, formats.accumulate)
        return torch.from_numpy(y)
    if unfold.integers(x, (formats.x, formats.g), formats):
        y = integers.over_pixels(x, flat, formats, size, stride, dilation)
        if y is not None:
            return y
    top = Operand(flat, formats.g, stream).along(0)
    lines = _in_place(x, view, formats.x, formats, size, stride, dilation, down=True)
    if lines is not None:
        return converted.product(lines, top.stack.lines(True), formats)[0]
    matrix = view.reshape(pixels, view.shape[dims:].numel())
    return product(Operand(matrix, formats.x, stream).along(0), top, formats, turn_a=True)


def input_gradient(g: torch.Tensor, w: torch.Tensor, shape: tuple[int, ...], stride: Sides, padding: Sides,
                   dilation: Sides, formats: Formats, stream: Stream | None) -> torch.Tensor:
    """Gradient (N, H, W, C) of the input: ``g`` convolved with the turned taps of ``w`` that each phase meets."""
    if strided.serves(g, stride, formats):
        y = strided.input_gradient(g, w, shape, stride, padding, dilation, formats)
        if y is not None:
            return y
    found = phases(w.shape[2:], shape[2:], stride, padding, dilation)
    taps = unfold.taps_matrices(w.detach())

    def own(phase):
        draw = laid(stream, lambda numbers: unfold.within(numbers.permute(0, 3, 1, 2).float(), phase).int())
        return over_channels(unfold.within(g, phase), taps(phase), formats.g, formats.w, formats, draw, phase.size,
                             (1,) * len(phase.size), phase.step)
    return together(found, own, g, (shape[0], *shape[2:], shape[1]))


def joined(groups: Sequence[torch.Tensor], dim: int = -1) -> torch.Tensor:
    """What groups have made, behind each other along a dimension."""
    return groups[0] if len(groups) == 1 else torch.cat(list(groups), dim)


def room(g: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor of any numbers where ``g`` lies."""
    return torch.from_numpy(scratch.empty(shape)) if on_host(g) else g.new_empty(shape)


def together(found: Sequence[Phase], own: Callable[[Phase], torch.Tensor], g: torch.Tensor,
             shape: tuple[int, ...]) -> torch.Tensor:
    """Images (N, H, W, C), each phase's pixels where they belong, where ``g`` lies; zeros where there are no taps."""
    if len(found) == 1 and not found[0].empty:
        return own(found[0])
    y = room(g, shape)
    for phase in found:
        y[:, *phase.places] = 0 if phase.empty else own(phase)
    return y
