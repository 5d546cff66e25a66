"""Convolutions of volumes as those of images: depth joins the channels (:mod:`golden.nn.volume`, the same bits).

A convolution is one of images (N * OD, kd * C, H, W); a transposed one is, for each phase of the stride in depth, one
of volumes of depth 1, which :mod:`golden.lower.transposed` has.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import pad

from hbfp.golden.nn.phases import lines

hbfp = torch.ops.hbfp


def _joined(x, taps, stride, dilation):
    """Channels (taps in depth, C) of each depth of the result: (N, C, D, H, W) -> (N * OD, taps * C, H, W)."""
    depth = (x.shape[2] - dilation * (taps - 1) - 1) // stride + 1
    parts = [x[:, :, dilation * tap:dilation * tap + stride * (depth - 1) + 1:stride] for tap in range(taps)]
    return torch.stack([part.transpose(1, 2) for part in parts], 2).flatten(2, 3).flatten(0, 1)


def _convolution(x, w, stride, padding, dilation, groups, formats):
    if padding[0]:
        x = pad(x, (0, 0, 0, 0, padding[0], padding[0]))
    found = []
    for part, own in zip(x.chunk(groups, 1), w.chunk(groups, 0), strict=True):
        images = _joined(part, w.shape[2], stride[0], dilation[0])
        flat = own.permute(0, 2, 1, 3, 4).flatten(1, 2)
        y = hbfp.conv2d(images, flat, stride[1:], padding[1:], dilation[1:], 1, formats)
        found.append(y.unflatten(0, (x.shape[0], -1)).transpose(1, 2))
    return found[0] if groups == 1 else torch.cat(found, 1)


def _transposed(x, w, stride, padding, output_padding, groups, dilation, formats):
    if x.shape[2] == w.shape[2] == 1 and not padding[0] and not output_padding[0]:
        return NotImplemented
    if groups > 1:
        return torch.cat([_transposed(part, own, stride, padding, output_padding, 1, dilation, formats)
                          for part, own in zip(x.chunk(groups, 1), w.chunk(groups, 0), strict=True)], 1)
    side = (x.shape[2] - 1) * stride[0] - 2 * padding[0] + dilation[0] * (w.shape[2] - 1) + 1 + output_padding[0]
    phases = list(lines(w.shape[2], side, stride[0], padding[0], dilation[0]))
    most, found = max(line.count for line in phases), []
    for line in phases:
        taps = list(line.taps)
        if not taps:
            continue
        within = pad(x, (0, 0, 0, 0, line.corner, line.side - x.shape[2] - line.corner))
        images = _joined(within, len(taps), 1, line.step).unsqueeze(2)
        turned = torch.stack([w[:, :, tap] for tap in taps]).flatten(0, 1).unsqueeze(2)
        y = hbfp.conv_transpose3d(images, turned, [1, *stride[1:]], [0, *padding[1:]], [0, *output_padding[1:]], 1,
                                  [1, *dilation[1:]], formats)
        y = y.squeeze(2).unflatten(0, (x.shape[0], -1)).transpose(1, 2)
        found.append((line, pad(y, (0, 0, 0, 0, 0, most - line.count)) if line.count < most else y))
    if len(phases) == 1:
        return found[0][1]
    given = {line.first: y for line, y in found}
    zeros = torch.zeros_like(found[0][1])
    return torch.stack([given.get(line.first, zeros) for line in phases], 3).flatten(2, 3)[:, :, :side]


#: Overload -> how to compute it by those of images; as :func:`golden.ops.table.decompositions` has them.
VOLUMES: dict[Any, Callable[..., Any]] = {hbfp.conv3d.default: _convolution, hbfp.conv_transpose3d.default: _transposed}
