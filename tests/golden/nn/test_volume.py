"""Volumes and transposed convolutions have the bits of images whose channels depth has joined, group after group.

Covers: golden/nn/transposed.py, golden/nn/alike_groups.py, golden/nn/grouped.py, golden/nn/unfold.py.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.fast import kernels  # noqa: E402
from golden.nn import conv, volume  # noqa: E402
from tests.cases import cover  # noqa: E402

from .test_conv import same  # noqa: E402

#: Channels in and out, groups, sides, kernel, stride, padding, dilation.
VOLUMES = [(8, 6, 1, (4, 5, 6), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
           (3, 5, 1, (5, 6, 7), (2, 3, 1), (2, 1, 2), (0, 1, 0), (1, 1, 2)),
           (6, 4, 2, (4, 4, 17), (3, 1, 2), (1, 2, 1), (1, 0, 1), (1, 1, 1)),
           (5, 5, 5, (4, 5, 6), (3, 2, 3), (1, 1, 2), (1, 0, 2), (1, 2, 1)),
           (18, 18, 18, (3, 4, 4), (2, 2, 2), (2, 2, 1), (0, 0, 1), (1, 1, 1)),
           (4, 34, 2, (1, 5, 5), (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1)),
           (4, 5, 1, (5, 6, 7), (1, 2, 3), (3, 2, 4), (0, 0, 1), (1, 1, 1))]
#: The same, with the further padding of the output in front of dilation.
TRANSPOSED = [(8, 6, 1, (1, 5, 6), (1, 4, 4), (1, 2, 2), (0, 1, 1), (0, 0, 0), (1, 1, 1)),
              (4, 6, 2, (1, 4, 9), (1, 3, 2), (1, 2, 1), (0, 1, 0), (0, 1, 0), (1, 1, 1)),
              (5, 5, 5, (1, 5, 5), (1, 3, 3), (1, 2, 2), (0, 1, 1), (0, 1, 1), (1, 1, 1)),
              (4, 8, 4, (1, 3, 17), (1, 3, 3), (1, 1, 1), (0, 1, 1), (0, 0, 0), (1, 1, 1)),
              (3, 4, 1, (3, 4, 5), (2, 3, 3), (2, 1, 3), (1, 0, 1), (1, 0, 2), (1, 1, 2)),
              (4, 4, 4, (2, 3, 4), (3, 3, 2), (2, 2, 2), (0, 1, 0), (0, 0, 1), (1, 1, 1)),
              (6, 12, 2, (2, 3, 4), (2, 2, 2), (1, 2, 2), (0, 0, 0), (0, 0, 0), (1, 1, 1))]
FORMATS = [({}, "fp32"), ({"mantissa": 12}, "fp32"), ({"block": (8, 8)}, "fp32"), ({"mantissa": 4}, "aligned"),
           ({"rounding": "truncate"}, "fp24"), ({"subnormals": "gradual"}, "fp32"), ({}, "bf16")]


def trained(call, x, w, scale=1.0):
    """Result and gradients."""
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = call(x, w)
    torch.manual_seed(1)
    y.backward(torch.randn(y.shape) * scale)
    return y, x.grad, w.grad


def compare(together, apart, x, w, scale):
    """Both ways give the same bits."""
    for got, want in zip(trained(together, x, w, scale), trained(apart, x, w, scale), strict=True):
        same(got, np.ascontiguousarray(want.detach().numpy()))


def formats_of(fmt):
    options, accumulate = fmt
    return gn.Formats.of(gn.HBFPFormat(**{"block": (1, 8)} | options), accumulate=accumulate)


def operands(x_shape, w_shape):
    torch.manual_seed(x_shape[1])
    x, w = torch.randn(x_shape), torch.randn(w_shape) * 1e-2
    x[0, 0, 0, 2], x[1, 1] = 1e-40, 0
    return x, w


@pytest.mark.parametrize("sizes, fmt, compiled, scale", cover(
    VOLUMES, FORMATS, [True, True, False], [1, 1e-34], turns=4))
def test_volumes(sizes, fmt, compiled, scale, monkeypatch):
    if not compiled:
        monkeypatch.setattr(kernels, "library", lambda: None)
    c, o, groups, sides, size, *geometry = sizes
    formats, (stride, padding, dilation) = formats_of(fmt), geometry

    def together(x, w):
        return volume.conv3d(x, w, formats, stride=stride, padding=padding, dilation=dilation, groups=groups)

    def apart(x, w):
        return torch.cat([volume.Conv3d.apply(a, b, *geometry, formats, None)
                          for a, b in zip(x.chunk(groups, 1), w.chunk(groups), strict=True)], 1)
    compare(together, apart, *operands((2, c, *sides), (o, c // groups, *size)), scale)


@pytest.mark.parametrize("sizes, fmt, compiled, scale", cover(
    TRANSPOSED, FORMATS, [True, True, False], [1, 1e-34], turns=4))
def test_transposed(sizes, fmt, compiled, scale, monkeypatch):
    if not compiled:
        monkeypatch.setattr(kernels, "library", lambda: None)
    c, o, groups, sides, size, stride, padding, more, dilation = sizes
    formats = formats_of(fmt)

    def together(x, w):
        return volume.conv_transpose3d(x, w, formats, stride=stride, padding=padding, output_padding=more,
                                       groups=groups, dilation=dilation)

    def apart(x, w):
        whole = together(x.detach(), w.detach()).shape[2:]
        return torch.cat([volume.ConvTranspose3d.apply(a, b, whole, stride, padding, dilation, formats, None)
                          for a, b in zip(x.chunk(groups, 1), w.chunk(groups), strict=True)], 1)
    compare(together, apart, *operands((2, c, *sides), (c, o // groups, *size)), scale)


@pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
@pytest.mark.parametrize("dims", [2, 3])
def test_memory_formats_change_nothing(dims):
    found, layout = [], {2: torch.channels_last, 3: torch.channels_last_3d}[dims]
    for each in (torch.contiguous_format, layout):
        torch.manual_seed(0)
        kind = {2: torch.nn.ConvTranspose2d, 3: torch.nn.Conv3d}[dims]
        layer = gn.convert(kind(6, 8, 3, padding=1), gn.HBFPFormat(block=(1, 8)))
        x = torch.randn(2, 6, *[5] * dims).contiguous(memory_format=each).requires_grad_()
        y = layer(x)
        y.backward(torch.randn(y.shape).contiguous(memory_format=each))
        found.append((y, x.grad, layer.weight.grad))
    for one, other in zip(*found, strict=True):
        same(one, np.ascontiguousarray(other.detach().numpy()))


@pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
@pytest.mark.parametrize("fmt", [({"block": (8, 8)}, "fp32"), ({}, "aligned"), ({"rounding": "truncate"}, "bf16"),
                                 ({"block": (8, 8), "mantissa": 12}, "fp24")])
@pytest.mark.parametrize("groups, c, o", [(2, 6, 4), (5, 5, 5), (3, 6, 24)])
def test_groups_with_what_is_no_number(groups, c, o, fmt):
    formats = formats_of(fmt)
    x, w = torch.randn(2, c, 6, 7), torch.randn(o, c // groups, 3, 2)
    x[0, 1, 2, 3], x[1, -1, 0, 0], w[-1, 0, 1, 1] = float("nan"), float("inf"), float("nan")
    options = ((2, 1), (1, 0), (1, 2), formats)

    def together(x, w):
        return conv.convolved(x, w, *options, None, groups)

    def apart(x, w):
        return torch.cat([conv.Conv2d.apply(a, b, *options, None)
                          for a, b in zip(x.chunk(groups, 1), w.chunk(groups), strict=True)], 1)
    compare(together, apart, x, w, 1)
