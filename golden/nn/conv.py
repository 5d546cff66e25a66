"""Two-dimensional convolution as matrix products in HBFP.

The law: with K in the order (kernel row, kernel column, channel),

- ``y  = patches(x) @ w``, patches (pixels, K), w (K, O);
- ``gx = patches(g, spread by the stride, padded) @ w turned``, K over the output channels;
- ``gw = patches(x)^T @ g``, reduced over the output pixels;

each as :func:`golden.matmul.matmul` gives it. Where blocks ``(1, B)`` fit the channels an element
falls into the same block in every patch, so it is converted once and the patches are never built.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from ..fast import kernels, lanes, patches
from ..noise import Stream
from . import portable
from .formats import Formats
from .products import Operand, check_float32, pieces_of, product
from .record import watcher


def _channels_last(x, padding):
    """(N, C, H, W) -> (N, H + padding, W + padding, C), contiguous; padding (left, right, top, bottom)."""
    left, right, top, bottom = padding
    if not any(padding) and x.permute(0, 2, 3, 1).is_contiguous():
        return x.permute(0, 2, 3, 1)
    if x.device.type == "cpu" and kernels.library() is not None:
        size = x.shape[2] + top + bottom, x.shape[3] + left + right
        return torch.from_numpy(patches.laid(x.numpy(), size, (top, left)))
    x = x.permute(0, 2, 3, 1)
    return (pad(x, (0, 0, *padding)) if any(padding) else x).contiguous()


def _patches(x, size, stride, dilation):
    """View (N, OH, OW, kh, kw, C) of padded channels-last ``x``."""
    n, h, w, c = x.shape
    (kh, kw), (sh, sw), (dh, dw) = size, stride, dilation
    oh, ow = (h - dh * (kh - 1) - 1) // sh + 1, (w - dw * (kw - 1) - 1) // sw + 1
    return x.as_strided((n, oh, ow, kh, kw, c), (h * w * c, sh * w * c, sw * c, dh * w * c, dw * c, 1))


@lru_cache(64)
def _offsets(shape, size, stride, dilation, side):
    """Where patches' rows and blocks start in flat channels-last x of ``shape``."""
    view = _patches(torch.empty(shape, device="meta"), size, stride, dilation)
    steps, c = view.stride(), shape[-1]

    def starts(dimensions):
        total = np.zeros(1, np.int64)
        for d in dimensions:
            total = (total[:, None] + np.arange(view.shape[d], dtype=np.int64) * steps[d]).ravel()
        return total
    taps = starts((3, 4))
    return starts((0, 1, 2)), (taps[:, None] + np.arange(0, c, side, dtype=np.int64)).ravel()


@lru_cache(64)
def _runs(shape, size, stride, dilation):
    """Where patches start in flat channels-last x of ``shape``, where their runs start in them, and a run's length."""
    kw, c = size[1], shape[-1]
    rows, taps = _taps(shape, size, stride, dilation)
    return (rows, taps[::kw].copy(), kw * c) if dilation[1] == 1 else (rows, taps, c)


def _patch_rows(x, size, stride, dilation):
    """:class:`golden.fast.patches.Patches` of channels-last ``x``."""
    return patches.Patches(x.numpy(), *_runs(tuple(x.shape), size, stride, dilation))


def _draws(fmt, stream):
    """``stream`` if the format draws from it."""
    return stream if fmt.rounding == "stochastic" else None


def _compiled(x, pair, formats, stream):
    """Whether the compiled ways serve: they are in hardware order, and quicker than patches with BLAS, so that order
    ``quick`` takes them too."""
    return (portable.on_host(x) and kernels.library() is not None and formats.accumulate == "fp32" and x.numel() > 0
            and watcher() is None and all(_draws(fmt, stream) is None or lanes.fits(stream, fmt.terms) for fmt in pair))


def _encoded(x, fmt, stream, axis=-1):
    """Compiled conversion of a matrix with contiguous rows, with noise from ``stream`` if the format takes any."""
    if _draws(fmt, stream) is None:
        return kernels.encoded(x, fmt, axis=axis)
    return lanes.encoded(x, fmt, stream, axis=axis)


def _drawn(rows, columns, fmt):
    """Numbers that a stochastic conversion of a matrix takes, padding included."""
    high, wide = fmt.block
    return -(-rows // high) * high * -(-columns // wide) * wide


def weight_matrix(w: torch.Tensor) -> torch.Tensor:
    """``w`` (O, C, kh, kw) as the matrix (K, O) that patches are multiplied with."""
    return w.permute(2, 3, 1, 0).reshape(-1, w.shape[0]).contiguous()


def _over_channels(x, w, fmt, w_fmt, formats, stream, size, stride, dilation, kept=None):
    """Patches of channels-last ``x`` times ``w`` (K, O), of which ``kept`` may be the conversion: (N, OH, OW, O)."""
    view = _patches(x, size, stride, dilation)
    n, oh, ow, kh, kw, c = view.shape
    once = c % fmt.terms == 0 and not fmt.square and not w_fmt.square
    if _compiled(x, (fmt, w_fmt), formats, stream) and once:
        a, a_span = _encoded(x.view(-1, c).numpy(), fmt, stream)
        b, b_span = kept or _encoded(w.numpy(), w_fmt, stream, 0)
        rows, blocks = _offsets(tuple(x.shape), size, stride, dilation, fmt.terms)
        y = kernels.multiply(a, b, fmt, w_fmt, a_span, b_span, rows=rows, blocks=blocks)
        return torch.from_numpy(y).view(n, oh, ow, -1)
    if _compiled(x, (fmt, w_fmt), formats, stream):
        rows, draws = _patch_rows(x, size, stride, dilation), _draws(fmt, stream)
        later = draws and lanes.Resumed(draws, _drawn(rows.pixels, rows.columns, fmt))    # the patches draw first
        b, b_span = kept or _encoded(w.numpy(), w_fmt, later or stream, 0)
        y = patches.product(rows, fmt, patches.Values.of(b, w_fmt, b_span), draws)
        if later is not None:
            stream.state[:] = later.state
        return torch.from_numpy(y).view(n, oh, ow, -1)
    if once and _draws(fmt, stream) is not None:
        y = _drawn_once(x, w, fmt, w_fmt, formats, stream, size, stride, dilation)
    else:
        matrix = view.reshape(n * oh * ow, kh * kw * c)
        y = product(Operand(matrix, fmt, stream).along(-1), Operand(w, w_fmt, stream).along(0), formats)
    return y.view(n, oh, ow, w.shape[1])


def _drawn_once(x, w, fmt, w_fmt, formats, stream, size, stride, dilation):
    """The product in torch's operations, with noise drawn for elements of channels-last ``x``, not of its patches."""
    def cut(tensor):
        view = _patches(tensor.view(*x.shape[:3], -1), size, stride, dilation)
        return view.reshape(view.shape[:3].numel(), -1)
    a = pieces_of(x.view(-1, x.shape[3]), fmt, stream, -1)
    a = replace(a, mantissa=cut(a.mantissa), exponent=cut(a.exponent), invalid=cut(a.invalid))
    return portable.product(a, pieces_of(w, w_fmt, stream, 0), formats.accumulate, guard=formats.guard,
                            growth=formats.growth)


def _values(x, fmt, stream):
    """What :meth:`golden.fast.patches.Values.of` takes, of a matrix that is reduced over its rows."""
    values, span = _encoded(x, fmt, stream, 0)
    return values, fmt, span


def _over_pixels(x, g, formats, stream, size, stride, dilation):
    """Patches of ``x``, turned, times ``g`` (N, OH, OW, O): gradient (kh, kw, C, O) of the weights."""
    view = _patches(x, size, stride, dilation)
    n, oh, ow, kh, kw, c = view.shape
    pixels, out = n * oh * ow, g.shape[-1]
    flat = g.reshape(pixels, out)
    if _compiled(x, (formats.x, formats.g), formats, stream):
        b, b_span = _encoded(flat.numpy(), formats.g, stream, 0)
        draws = _draws(formats.x, stream)
        if draws is None or formats.x.square:
            y = patches.turned_product(_patch_rows(x, size, stride, dilation), formats.x,
                                       patches.Values.of(b, formats.g, b_span), draws)
            return torch.from_numpy(y).view(kh, kw, c, out)
        if b.strides[1] != 4:                          # once, rather than in each of the products below
            b = kernels.turned(b.T)
        y, source = np.empty((kh, kw, c, out), np.float32), view.numpy()
        for i, j in np.ndindex(kh, kw):                # tap by tap: noise is drawn column by column
            a, a_span = lanes.encoded(source[:, :, :, i, j].reshape(pixels, c), formats.x, stream, axis=0)
            kernels.multiply(a.T, b, formats.x, formats.g, a_span, b_span, out=y[i, j])
        return torch.from_numpy(y)
    top = Operand(flat, formats.g, stream).along(0)
    matrix = view.reshape(pixels, kh * kw * c)
    return product(Operand(matrix, formats.x, stream).along(0), top, formats, turn_a=True).view(kh, kw, c, out)


class Conv2d(torch.autograd.Function):
    """Convolution and its two gradients, group after group."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: tuple[int, int], padding: tuple[int, int],
                dilation: tuple[int, int], formats: Formats, stream: Stream | None, groups: int = 1,
                kept: Any = None) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (O, C / groups, kh, kw) -> (N, O, OH, OW), channels last in memory."""
        ctx.save_for_backward(x, w)
        ctx.options, ctx.groups = (stride, padding, dilation, formats, stream), groups
        (ph, pw), size = padding, tuple(w.shape[2:])
        ctx.last = [_channels_last(part, (pw, pw, ph, ph)) for part in x.detach().chunk(groups, 1)]
        if not _compiled(ctx.last[0], (formats.x, formats.w), formats, stream):
            kept = None
        parts = [_over_channels(last, None if kept else weight_matrix(own), formats.x, formats.w, formats, stream, size,
                                stride, dilation, kept)
                 for last, own in zip(ctx.last, w.detach().chunk(groups), strict=True)]
        return (parts[0] if groups == 1 else torch.cat(parts, -1)).permute(0, 3, 1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        (stride, padding, dilation, formats, stream), size = ctx.options, tuple(w.shape[2:])
        shape = x.shape[0], x.shape[1] // ctx.groups, *x.shape[2:]
        gx, gw = [], []
        for last, own, top in zip(ctx.last, w.chunk(ctx.groups), g.chunk(ctx.groups, 1), strict=True):
            if ctx.needs_input_grad[0]:
                gx.append(_input_gradient(top, own, shape, stride, padding, dilation, formats, stream))
            if ctx.needs_input_grad[1]:
                flat = _channels_last(top, (0, 0, 0, 0))
                gw.append(_over_pixels(last, flat, formats, stream, size, stride, dilation))
        return (torch.cat(gx, -1).permute(0, 3, 1, 2) if gx else None,
                torch.cat(gw, -1).permute(3, 2, 0, 1) if gw else None, *[None] * 7)


def _spread(g, size, shape, stride, padding, dilation):
    """``g`` (N, O, OH, OW) channels last, spread by the stride and padded: its patches make the input's gradient."""
    n, _, h, wide = shape
    full = [d * (k - 1) for d, k in zip(dilation, size, strict=True)]
    if g.device.type == "cpu" and kernels.library() is not None:
        corner = full[0] - padding[0], full[1] - padding[1]
        return torch.from_numpy(patches.laid(g.numpy(), (h + full[0], wide + full[1]), corner, stride))
    spread = torch.zeros(n, h + 2 * padding[0] + full[0], wide + 2 * padding[1] + full[1], g.shape[1], device=g.device)
    oh, ow = g.shape[2:]
    spread[:, full[0]:full[0] + (oh - 1) * stride[0] + 1:stride[0],
           full[1]:full[1] + (ow - 1) * stride[1] + 1:stride[1]] = g.permute(0, 2, 3, 1)
    return spread[:, padding[0]:padding[0] + h + full[0], padding[1]:padding[1] + wide + full[1]].contiguous()


def _input_gradient(g, w, shape, stride, padding, dilation, formats, stream):
    """Gradient (N, H, W, C) of the input: ``g`` spread by the stride, convolved with ``w`` turned."""
    spread = _spread(g, w.shape[2:], shape, stride, padding, dilation)
    turned = w.detach().flip(2, 3).permute(2, 3, 0, 1).reshape(-1, shape[1]).contiguous()
    return _over_channels(spread, turned, formats.g, formats.w, formats, stream, tuple(w.shape[2:]), (1, 1), dilation)


class Depthwise(torch.autograd.Function):
    """Convolution of each channel alone, and its two gradients: the bits of a :class:`Conv2d` per channel."""

    @staticmethod
    def serves(x: torch.Tensor, w: torch.Tensor, groups: int, formats: Formats) -> bool:
        """Whether all channels can go through the kernels together."""
        return (groups == x.shape[1] == w.shape[0] and not formats.stochastic and not formats.x.square
                and not formats.w.square and not formats.g.square
                and _compiled(x, (formats.x, formats.w, formats.g), formats, None))

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: tuple[int, int], padding: tuple[int, int],
                dilation: tuple[int, int], formats: Formats) -> torch.Tensor:
        """``x`` (N, C, H, W), ``w`` (C, 1, kh, kw) -> (N, C, OH, OW), channels last in memory."""
        ctx.save_for_backward(x, w)
        ctx.options = stride, padding, dilation, formats
        ph, pw = padding
        ctx.last = _channels_last(x.detach(), (pw, pw, ph, ph))
        return _per_channel(ctx.last, w.detach(), formats.x, formats.w, stride, dilation)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        stride, padding, dilation, formats = ctx.options
        size, c = tuple(w.shape[2:]), w.shape[0]
        gx = gw = None
        if ctx.needs_input_grad[0]:
            spread = _spread(g, size, x.shape, stride, padding, dilation)
            gx = _per_channel(spread, w.detach().flip(2, 3), formats.g, formats.w, (1, 1), dilation)
        if ctx.needs_input_grad[1]:
            top = _channels_last(g, (0, 0, 0, 0)).reshape(-1, c).numpy()
            pixels, taps = _taps(tuple(ctx.last.shape), size, stride, dilation)
            rows = patches.Patches(ctx.last.numpy(), pixels, taps, c)
            y = patches.depthwise_turned(rows, formats.x, patches.Values.of(*_values(top, formats.g, None)))
            gw = torch.from_numpy(y).T.reshape(w.shape)
        return gx, gw, None, None, None, None


def _taps(shape, size, stride, dilation):
    """Where patches and their taps start in flat channels-last x of ``shape``."""
    return _offsets(shape, size, stride, dilation, shape[-1])


def _per_channel(last, w, fmt, w_fmt, stride, dilation):
    """Channels-last ``last``, each channel convolved with its own ``w`` (C, 1, kh, kw): (N, C, OH, OW)."""
    c, size = w.shape[0], tuple(w.shape[2:])
    n, oh, ow = _patches(last, size, stride, dilation).shape[:3]
    rows = patches.Patches(last.numpy(), *_taps(tuple(last.shape), size, stride, dilation), c)
    taps = w.reshape(c, -1).T.contiguous().numpy()
    y = patches.depthwise(rows, fmt, patches.Values.of(*_values(taps, w_fmt, None)))
    return torch.from_numpy(y).view(n, oh, ow, c).permute(0, 3, 1, 2)


@torch.compiler.disable
def conv2d(x: torch.Tensor, w: torch.Tensor, formats: Formats, *, stride: tuple[int, int] = (1, 1),
           padding: tuple[int, int] = (0, 0), dilation: tuple[int, int] = (1, 1), groups: int = 1,
           stream: Stream | None = None, kept: Any = None) -> torch.Tensor:
    """Convolution of x (N, C, H, W) with w (O, C / groups, kh, kw); zeros around.

    ``kept`` is the compiled conversion of :func:`weight_matrix`, without groups, for a call that needs no gradients.
    """
    check_float32(input=x, weight=w)
    if x.dim() != 4 or w.dim() != 4 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ValueError(f"Shapes of input and weight must be (N, C, H, W) and (O, C / groups, kh, kw), not "
                         f"{tuple(x.shape)} and {tuple(w.shape)} with {groups} groups")
    for axis in range(2):
        if x.shape[2 + axis] + 2 * padding[axis] < dilation[axis] * (w.shape[2 + axis] - 1) + 1:
            raise ValueError(f"Kernel must fit the padded input, not {tuple(w.shape[2:])} in {tuple(x.shape[2:])}")
    if groups > 1 and Depthwise.serves(x, w, groups, formats):
        return Depthwise.apply(x, w, stride, padding, dilation, formats)
    return Conv2d.apply(x, w, stride, padding, dilation, formats, stream, groups, kept)
