"""Gradients of pooling: to each element what the windows that it lies in give it, added tap by tap.

A window gives its gradient to the first of its largest elements, or a share to each. Where
windows overlap, each tap has a tensor as large as the result; these are added kernel row by kernel row.
"""

from math import prod

import torch

from .operation import Operation, Shape, Unsupported, calls, pair
from .windows import HANGS

aten = torch.ops.aten


def _to_elements(taps, shape, size, stride, padding, dilation):
    """Tensors of the windows' shape, one of each tap, as what they add up to in the elements of ``shape``."""
    (kh, kw), (sh, sw), (dh, dw), (h, w) = size, stride, dilation, shape[-2:]
    oh, ow = taps[0].shape[-2:]
    if size == stride and (h, w) == (oh * kh, ow * kw) and not any(padding) and dilation == (1, 1):
        lines = [torch.stack(taps[i * kw:(i + 1) * kw], -1).flatten(-2) for i in range(kh)]
        return torch.stack(lines, -2).flatten(-3, -2)
    total = None
    tall, wide = h + 2 * padding[0], w + 2 * padding[1]
    for number, tap in enumerate(taps):
        i, j = number // kw * dh, number % kw * dw
        place = _between(_between(tap, sw, -1), sh, -2)
        place = aten.constant_pad_nd(place, [j, wide - j - place.shape[-1], i, tall - i - place.shape[-2]])
        total = place if total is None else total + place
    return total[..., padding[0]:padding[0] + h, padding[1]:padding[1] + w]


def _between(tensor, step, dim):
    """A tensor with ``step - 1`` zeros between any two numbers along a dimension."""
    if step == 1:
        return tensor
    apart = torch.stack([tensor, *[torch.zeros_like(tensor)] * (step - 1)], dim)
    return apart.flatten(dim - 1, dim).narrow(dim, 0, (tensor.shape[dim] - 1) * step + 1)


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
            less = aten.threshold_backward(torch.ones_like(gradient), most - tap, 0)
            mine = aten.threshold_backward(left, 1 - less, 0)          # the largest, and none before it was
            taps.append(aten.threshold_backward(gradient, mine, 0))
            left = left - mine
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
