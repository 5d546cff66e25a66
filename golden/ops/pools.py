"""Gradients of pooling: to each element what the windows that it lies in give it, added tap by tap.

A window gives its gradient to the first of its largest elements, or a share to each. Where windows overlap, the
elements of each phase of the stride are a sum of those taps that reach them, kernel row by kernel row, of tensors as
large as the windows' result; +0 stands for all taps that reach them not, since one is as many.
"""

from math import prod

import torch

from .operation import Operation, Shape, Unsupported, calls, pair
from .windows import HANGS

aten = torch.ops.aten


def _to_elements(taps, shape, size, stride, padding, dilation):
    """Tensors of the windows' shape, one of each tap, as what they add up to in the elements of ``shape``."""
    (kh, kw), (sh, sw), (h, w) = size, stride, shape[-2:]
    oh, ow = taps[0].shape[-2:]
    if size == stride and (h, w) == (oh * kh, ow * kw) and not any(padding) and dilation == (1, 1):
        lines = [torch.stack(taps[i * kw:(i + 1) * kw], -1).flatten(-2) for i in range(kh)]
        return torch.stack(lines, -2).flatten(-3, -2)
    high, wide = -(-h // sh), -(-w // sw)
    lines = [_alternating([_phase(taps, (padding[0] + y, padding[1] + x), (high, wide), size, stride, dilation)
                           for x in range(sw)], -1) for y in range(sh)]
    return _alternating(lines, -2)[..., :h, :w]


def _phase(taps, corner, sides, size, stride, dilation):
    """What every ``stride``-th element from ``corner`` on gets, ``sides`` of them: a sum of the taps that reach them.

    Corners and taps are counted in pixels from the border's first.
    """
    parts = []
    for number, tap in enumerate(taps):
        behind = [place * d - at for place, d, at in zip(divmod(number, size[1]), dilation, corner, strict=True)]
        if not any(each % step for each, step in zip(behind, stride, strict=True)):
            parts.append(_moved(tap, [each // step for each, step in zip(behind, stride, strict=True)], sides))
    if parts:
        return sum(parts[1:], parts[0] if len(parts) == len(taps) else parts[0] + 0.0)
    return torch.zeros_like(taps[0])[..., :1, :1].expand(*taps[0].shape[:-2], *sides)


def _moved(tensor, by, sides):
    """A tensor's pixels as those from ``by`` on of images of these sides, and zeros where it has none."""
    around = []
    for dim, first, side in zip((-2, -1), by, sides, strict=True):
        begin, end = max(0, -first), min(tensor.shape[dim], side - first)
        if end <= begin:
            return torch.zeros_like(tensor)[..., :1, :1].expand(*tensor.shape[:-2], *sides)
        tensor = tensor.narrow(dim, begin, end - begin)
        around = [max(0, first), side - first - end, *around]
    return aten.constant_pad_nd(tensor, around) if any(around) else tensor


def _alternating(parts, dim):
    """Tensors whose numbers take turns along a dimension."""
    return parts[0] if len(parts) == 1 else torch.stack(parts, dim).flatten(dim - 1, dim)


def _max_pool(gradient, x, size, stride, padding, dilation, ceil_mode, indices):
    if ceil_mode:
        raise Unsupported(HANGS)
    size, padding, dilation = pair(size), pair(padding), pair(dilation)
    stride = pair(stride or size)
    (ph, pw), (oh, ow) = padding, gradient.shape[-2:]
    most = aten.max_pool2d_with_indices(x, size, stride, padding, dilation)[0]
    around = aten.constant_pad_nd(x, [pw, pw, ph, ph], float("-inf")) if ph or pw else x
    left, taps = torch.ones_like(gradient), []
    for i in range(size[0]):
        for j in range(size[1]):
            tap = around[..., dilation[0] * i:, dilation[1] * j:]
            tap = tap[..., :stride[0] * (oh - 1) + 1:stride[0], :stride[1] * (ow - 1) + 1:stride[1]]
            others = aten.threshold_backward(left, most - tap, 0)
            taps.append(aten.threshold_backward(gradient, left - others, 0))     # the largest, and none before it was
            left = others
    return _to_elements(taps, x.shape, size, stride, padding, dilation)


def _average_pool(gradient, x, size, stride=(), padding=0, ceil_mode=False, count_include_pad=True,
                  divisor_override=None):
    size, padding = pair(size), pair(padding)
    if ceil_mode:
        raise Unsupported(HANGS)
    if divisor_override is not None or not count_include_pad and any(padding):
        raise Unsupported("it divides by another number than the window's elements")
    share = gradient * (1 / prod(size))
    return _to_elements([share] * prod(size), x.shape, size, pair(stride or size), padding, (1, 1))


def _adaptive_pool(gradient, x):
    (h, w), (oh, ow) = x.shape[-2:], gradient.shape[-2:]
    if h % oh or w % ow:
        raise Unsupported(f"{h} x {w} pixels are no multiple of {oh} x {ow}; sides that divide would do")
    share = gradient * (1 / (h // oh * (w // ow)))
    shape = (*gradient.shape[:-2], oh, h // oh, ow, w // ow)
    return share.unsqueeze(-1).unsqueeze(-3).expand(shape).reshape(x.shape)


OPERATIONS = tuple(Operation(f"{name}_backward", calls(call), Shape.PARTS, parts=parts, gradient=True)
                   for name, call, parts in (("max_pool2d", "max_pool2d_with_indices_backward", _max_pool),
                                             ("avg_pool2d", "avg_pool2d_backward", _average_pool),
                                             ("adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", _adaptive_pool)))
