"""Three-dimensional and transposed convolution: K has the order kernel row, kernel column, kernel depth, channel.

Without noise, or of each channel alone, :mod:`golden.nn.conv` and :mod:`golden.nn.transposed` do both on the CPU.
Elsewhere depth joins the channels in products over these, in those of :mod:`golden.nn.conv_products`, and each element
draws noise for each tap of depth. A transposed convolution has the same three products with the roles of input and
output exchanged: ``y`` is what the gradient of the input is in a convolution, ``gx`` what its output is, ``gw`` the
same. One or two dimensions are three with depth 1.
"""

from typing import Any

import torch

from ..fast import kernels, patches, scratch
from ..noise import Stream
from . import again, conv, conv_products, unfold
from .depthwise import Depthwise
from .formats import Formats
from .memory import array
from .once import unviewed
from .phases import lines
from .portable import on_host
from .products import check_float32
from .transposed import Transposed, exchanged

Triple = tuple[int, int, int]


def _joined(x, padding, kernel, stride, dilation):
    """For each depth of the output the channels of the depths that it meets: (N * OD, H, W, kd * C).

    ``x`` is (N, C, D, H, W), ``padding`` that of :func:`golden.nn.unfold.channels_last`.
    """
    if on_host(x) and kernels.library() is not None:
        return _joined_here(array(x), padding, kernel, stride, dilation)
    last = unfold.channels_last(x, padding)
    slices = last.unfold(1, dilation * (kernel - 1) + 1, stride)[..., ::dilation]    # (N, OD, H, W, C, kd)
    return slices.permute(0, 1, 2, 3, 5, 4).flatten(4, 5).flatten(0, 1).contiguous()


def _joined_here(x, padding, kernel, stride, dilation):
    """The same, compiled: each depth of a kernel where it belongs."""
    before, after = padding[-2::-2], padding[::-2]
    side, high, wide = (sum(each) for each in zip(x.shape[2:], before, after, strict=True))
    depth = (side - dilation * (kernel - 1) - 1) // stride + 1
    y = scratch.empty((len(x), depth, high, wide, kernel, x.shape[1]))
    for tap in range(kernel):
        away, rest = divmod(tap * dilation - before[0], stride)
        patches.lay(x[:, :, rest::stride], y[..., tap, :].transpose(0, 4, 1, 2, 3), (-away, *before[1:]))
    return torch.from_numpy(y).flatten(4).flatten(0, 1)


def _output(x, w, stride, padding, dilation, formats, stream):
    """Convolution of x (N, C, D, H, W) with w (O, C, kd, kh, kw)."""
    last = _joined(x, unfold.around(padding), w.shape[2], stride[0], dilation[0])
    matrix = w.permute(3, 4, 2, 1, 0).reshape(-1, w.shape[0]).contiguous()
    return conv_products.over_channels(last, matrix, formats.x, formats.w, formats, stream, tuple(w.shape[3:]),
                                       stride[1:], dilation[1:])                        # (N * OD, OH, OW, O)


def _input_gradient(g, w, shape, stride, padding, dilation, formats, stream):
    """Gradient (N, C, D, H, W) of the input."""
    n, c, d = shape[:3]
    y = conv_products.room(g, (n, d, *shape[3:], c))
    for line in lines(w.shape[2], d, stride[0], padding[0], dilation[0]):
        if not line.taps:
            y[:, line.first::stride[0]] = 0
            continue
        behind = line.side - g.shape[2] - line.corner
        joined = _joined(g, (0, 0, 0, 0, line.corner, behind), len(line.taps), 1, line.step).movedim(-1, 1)
        turned = w[:, :, list(line.taps)].permute(2, 0, 1, 3, 4).flatten(0, 1)
        own = conv_products.input_gradient(joined, turned, (n * line.count, c, *shape[3:]), stride[1:], padding[1:],
                                           dilation[1:], formats, stream)
        y[:, line.first::stride[0]] = own.unflatten(0, (n, line.count))              # of (n * count, H, W, C)
    return y.permute(0, 4, 1, 2, 3)


def _weight_gradient(x, g, kernel, stride, padding, dilation, formats, stream):
    """Gradient (O, C, kd, kh, kw) of the weights."""
    # What no patch reaches would be another row of pixels.
    ends = [(g.shape[2 + i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 for i in range(3)]
    around = [each for i in (2, 1, 0) for each in (padding[i], ends[i] - padding[i] - x.shape[2 + i])]
    last, pixels = unfold.channels_last(x, around), unfold.channels_last(g, [0] * 6)
    return conv_products.over_pixels(last, pixels, formats, stream, tuple(kernel), stride, dilation)


class Conv3d(torch.autograd.Function):
    """Convolution without groups and its two gradients."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, stride: Triple, padding: Triple, dilation: Triple,
                formats: Formats, stream: Stream | None) -> torch.Tensor:
        """``x`` (N, C, D, H, W), ``w`` (O, C, kd, kh, kw) -> (N, O, OD, OH, OW)."""
        ctx.save_for_backward(x, w)
        ctx.run = again.rule(formats, lambda a, b: Conv3d.apply(a, b, stride, padding, dilation, formats, None))
        ctx.options = stride, padding, dilation, formats, stream
        y = _output(x.detach(), w.detach(), stride, padding, dilation, formats, stream)
        return unviewed(y.unflatten(0, (x.shape[0], -1)).permute(0, 4, 1, 2, 3))

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        gx = _input_gradient(g, w.detach(), x.shape, *ctx.options) if ctx.needs_input_grad[0] else None
        gw = _weight_gradient(x.detach(), g, w.shape[2:], *ctx.options) if ctx.needs_input_grad[1] else None
        return gx, gw, None, None, None, None, None


class ConvTranspose3d(torch.autograd.Function):
    """Transposed convolution without groups and its two gradients."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, size: Triple, stride: Triple, padding: Triple,
                dilation: Triple, formats: Formats, stream: Stream | None) -> torch.Tensor:
        """``x`` (N, C, D, H, W), ``w`` (C, O, kd, kh, kw) -> (N, O) and ``size``."""
        ctx.save_for_backward(x, w)
        ctx.run = again.rule(formats, lambda a, b: ConvTranspose3d.apply(a, b, size, stride, padding, dilation, formats,
                                                                         None))
        ctx.options = stride, padding, dilation, exchanged(formats), stream
        return unviewed(_input_gradient(x.detach(), w.detach(), (x.shape[0], w.shape[1], *size), *ctx.options))

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x`` and ``w``."""
        x, w = ctx.saved_tensors
        n, _, d, h, wide = x.shape
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = _output(g, w.detach(), *ctx.options)
            gx = gx.unflatten(0, (n, -1))[:, :d, :h, :wide].permute(0, 4, 1, 2, 3)
        if ctx.needs_input_grad[1]:
            gw = _weight_gradient(g, x.detach(), w.shape[2:], *ctx.options)
        return gx, gw, None, None, None, None, None, None


@torch.compiler.disable
def conv3d(x: torch.Tensor, w: torch.Tensor, formats: Formats, *, stride: Triple, padding: Triple, dilation: Triple,
           groups: int, stream: Stream | None = None) -> torch.Tensor:
    """Convolution of x (N, C, D, H, W) with w (O, C / groups, kd, kh, kw): (N, O, OD, OH, OW); zeros around."""
    check_float32(input=x, weight=w)
    if x.dim() != 5 or w.dim() != 5 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ValueError("Shapes of input and weight must be (N, C, D, H, W) and (O, C / groups, kd, kh, kw), not "
                         f"{tuple(x.shape)} and {tuple(w.shape)} with {groups} groups")
    if any(x.shape[2 + i] + 2 * padding[i] < dilation[i] * (w.shape[2 + i] - 1) + 1 for i in range(3)):
        raise ValueError(f"Kernel must fit the padded input, not {tuple(w.shape[2:])} in {tuple(x.shape[2:])}")
    if on_host(x) and (not formats.stochastic or groups > 1 and Depthwise.serves(x, w, groups, formats, stream)):
        return conv.convolved(x, w, stride, padding, dilation, formats, stream if formats.stochastic else None, groups)
    parts = [Conv3d.apply(a, b, stride, padding, dilation, formats, stream)
             for a, b in zip(x.chunk(groups, 1), w.chunk(groups, 0), strict=True)]
    return parts[0] if groups == 1 else torch.cat(parts, 1)


@torch.compiler.disable
def conv_transpose3d(x: torch.Tensor, w: torch.Tensor, formats: Formats, *, stride: Triple, padding: Triple,
                     output_padding: Triple, groups: int, dilation: Triple,
                     stream: Stream | None = None) -> torch.Tensor:
    """Transposed convolution of x (N, C, D, H, W) with w (C, O / groups, kd, kh, kw)."""
    check_float32(input=x, weight=w)
    if x.dim() != 5 or w.dim() != 5 or x.shape[1] != w.shape[0] or w.shape[0] % groups:
        raise ValueError("Shapes of input and weight must be (N, C, D, H, W) and (C, O / groups, kd, kh, kw), not "
                         f"{tuple(x.shape)} and {tuple(w.shape)} with {groups} groups")
    size = tuple((x.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (w.shape[2 + i] - 1) + 1
                 + output_padding[i] for i in range(3))
    if min(size) < 1:
        raise ValueError(f"Output must have pixels, not size {size}")
    if any(o >= max(s, d) for o, s, d in zip(output_padding, stride, dilation, strict=True)):
        raise ValueError(f"Padding of the output must be below stride or dilation, not {output_padding}")
    apart = w.shape[1] == 1 < groups and Depthwise.serves(x, w, groups, formats, stream)
    if on_host(x) and (not formats.stochastic or apart):
        flat = x.shape[2] == w.shape[2] == size[0] == 1            # images
        sides, *options = ((each[1:] if flat else each) for each in (size, stride, padding, dilation))
        y = Transposed.apply(*((x[:, :, 0], w[:, :, 0]) if flat else (x, w)), sides, *options, formats, groups,
                             stream if formats.stochastic else None)
        return y[:, :, None] if flat else y
    parts = [ConvTranspose3d.apply(a, b, size, stride, padding, dilation, formats, stream)
             for a, b in zip(x.chunk(groups, 1), w.chunk(groups, 0), strict=True)]
    return parts[0] if groups == 1 else torch.cat(parts, 1)
