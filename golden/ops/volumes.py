"""Pooling of volumes: of images first, and then of their depths, each of all pixels of an image.

An average of averages divides by the same numbers as one of all, also where windows hang over an edge.
"""

from typing import Any

import torch

from .operation import Operation, Shape, calls

aten = torch.ops.aten


def _three(value):
    """A size in three dimensions that torch also takes as one number."""
    return [value] * 3 if isinstance(value, int) else list(value) * (3 // len(value))


def _pooled(x, pool, sizes, *options):
    """A volume (..., C, D, H, W) after ``pool`` of images, given those of ``sizes`` that are theirs, and of depths."""
    size, *rest = sizes
    lead = x.shape[:-3]
    flat = x.reshape(1, -1, *x.shape[-2:])
    y = pool(flat, *(each[1:] for each in (size, *rest)), *options)
    pixels = y.shape[-2:]
    y = y.reshape(1, -1, x.shape[-3], pixels.numel())
    y = pool(y, [size[0], 1], *([each[0], own] for each, own in zip(rest, (1, 0, 1), strict=False)), *options)
    return y.reshape(*lead, -1, *pixels)


def _max(x, size, stride=(), padding=0, dilation=1, ceil_mode=False):
    size = _three(size)
    sizes = (size, _three(stride or size), _three(padding), _three(dilation))
    y = _pooled(x, lambda *given: aten.max_pool2d_with_indices(*given)[0], sizes, ceil_mode)
    return y, x.new_empty(0)


def _average(x, size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    size = _three(size)
    sizes = (size, _three(stride or size), _three(padding))
    if divisor_override is None:
        return _pooled(x, aten.avg_pool2d, sizes, ceil_mode, count_include_pad)
    return _pooled(x, aten.avg_pool2d, sizes, ceil_mode, count_include_pad, 1) * (1 / divisor_override)


def _adaptive(pool):
    def parts(x, size):
        size = _three(size)
        y = pool(x.reshape(1, -1, *x.shape[-2:]), size[1:])
        y = pool(y.reshape(1, -1, x.shape[-3], size[1] * size[2]), [size[0], size[1] * size[2]])
        return y.reshape(*x.shape[:-3], *size)
    return parts


def _adaptive_max(x, size):
    return _adaptive(lambda *given: aten.adaptive_max_pool2d(*given)[0])(x, size), x.new_empty(0)


def _parts(name, call, parts):
    return Operation(name, calls(call), Shape.PARTS, parts=parts)


OPERATIONS: tuple[Any, ...] = (
    _parts("max_pool3d", "max_pool3d_with_indices", _max), _parts("avg_pool3d", "avg_pool3d", _average),
    _parts("adaptive_avg_pool3d", "_adaptive_avg_pool3d", _adaptive(aten._adaptive_avg_pool2d)),
    _parts("adaptive_max_pool3d", "adaptive_max_pool3d", _adaptive_max))
