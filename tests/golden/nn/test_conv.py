"""Every compiled way of a convolution gives the bits of the plain definition, noise included.

Covers: golden/fast/patches.py, golden/nn/unfold.py.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.bfp import encode_plain  # noqa: E402
from golden.fast import kernels  # noqa: E402
from golden.matmul import matmul_blocks  # noqa: E402
from golden.nn import conv, functional  # noqa: E402
from golden.noise import Stream  # noqa: E402
from golden.number.blocks import Blocks  # noqa: E402
from tests.cases import cover  # noqa: E402

from .strided import gradient  # noqa: E402

# channels in and out, kernel, stride, padding, dilation
CONVOLUTIONS = [(16, 8, (3, 3), (1, 1), (1, 1), (1, 1)), (3, 16, (3, 3), (2, 2), (1, 1), (1, 1)),
                (8, 12, (3, 2), (1, 1), (0, 1), (2, 1)), (8, 8, (1, 3), (1, 1), (0, 0), (1, 2)),
                (24, 5, (1, 1), (2, 2), (2, 2), (1, 1))]


def same(tensor, array):
    got, want = np.ascontiguousarray(tensor.detach().numpy()), np.ascontiguousarray(array)
    assert got.shape == want.shape and (got.view(np.uint32) == want.view(np.uint32)).all()


def unfolded(x, size, stride, dilation):
    """Patches (pixels, K) of channels-last padded ``x``; K runs over kernel row, kernel column, channel."""
    x = torch.from_numpy(np.ascontiguousarray(x)).double().permute(0, 3, 1, 2)
    columns = torch.nn.functional.unfold(x, size, dilation=dilation, stride=stride)
    n, _, pixels = columns.shape
    parts = columns.view(n, x.shape[1], size[0] * size[1], pixels).permute(0, 3, 2, 1)
    return parts.reshape(n * pixels, -1).numpy()


class Plain:
    """The law of a convolution's three products, noise drawn from a stream in the stated order."""

    def __init__(self, fmt, stream, accumulate="fp32"):
        self.fmt, self.stream, self.accumulate = fmt, stream, accumulate
        self.axis = -1 if fmt.square else 0

    def draw(self, shape, axis=-1):
        return self.stream.draw(shape, self.fmt, axis=axis) if self.fmt.rounding == "stochastic" else None

    def over_channels(self, x, w, *geometry):
        rows = unfolded(x, *geometry).astype(np.float32)
        if self.fmt.square or x.shape[-1] % self.fmt.terms or self.fmt.rounding != "stochastic":
            noise = self.draw(rows.shape)
        else:                                          # each element is converted once, for all its patches
            once = self.draw((x.size // x.shape[-1], x.shape[-1]))
            noise = unfolded(once.reshape(x.shape), *geometry).astype(np.int32)
        b = encode_plain(w, self.fmt, self.draw(w.shape, self.axis), axis=0)
        return matmul_blocks(encode_plain(rows, self.fmt, noise), b, self.accumulate, plain=True)

    def over_pixels(self, x, g, *geometry):
        b = encode_plain(g, self.fmt, self.draw(g.shape, self.axis), axis=0)
        rows = unfolded(x, *geometry).astype(np.float32)
        a = encode_plain(rows, self.fmt, self.draw(rows.shape, self.axis), axis=self.axis)
        turned = Blocks(a.mantissa.T, a.exponent.T, a.invalid.T, self.fmt)
        return matmul_blocks(turned, b, self.accumulate, plain=True)


@pytest.mark.parametrize("rounding", ["rne", "truncate", "stochastic"])
@pytest.mark.parametrize("mantissa, block, scale", [
    (4, (1, 8), 1), (12, (1, 8), 1), (4, (8, 8), 1), (12, (8, 8), 1e-18), (4, (1, 12), 1e-18), (8, (1, 5), 1)])
@pytest.mark.parametrize("c, o, size, stride, padding, dilation", CONVOLUTIONS)
def test_three_products(c, o, size, stride, padding, dilation, mantissa, block, scale, rounding, accumulate="fp32"):
    torch.manual_seed(c)
    fmt = gn.HBFPFormat(mantissa=mantissa, block=block, rounding=rounding)
    lanes = gn.Formats.of(fmt).lanes
    stream, plain = Stream(7, lanes), Plain(fmt, Stream(7, lanes), accumulate)
    x = (torch.randn(2, c, 9, 8) * scale).requires_grad_()
    w = (torch.randn(o, c, *size) * scale).requires_grad_()
    formats = gn.Formats.of(fmt, accumulate=accumulate)
    y = functional.conv2d(x, w, None, stride, padding, dilation, 1, formats, stream=stream)
    g = torch.randn_like(y) * scale
    y.backward(g)
    last = np.pad(x.detach().permute(0, 2, 3, 1).numpy(), ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)))
    matrix = np.ascontiguousarray(w.detach().permute(2, 3, 1, 0).reshape(-1, o).numpy())
    same(y.permute(0, 2, 3, 1).reshape(-1, o), plain.over_channels(last, matrix, size, stride, dilation))

    same(x.grad, gradient(lambda part, back: plain.over_channels(part.around, back, *part.geometry), g, w.detach(),
                          (9, 8), stride, padding, dilation))

    top = np.ascontiguousarray(g.permute(0, 2, 3, 1).reshape(-1, o).numpy())
    same(w.grad.permute(2, 3, 1, 0).reshape(-1, o), plain.over_pixels(last, top, size, stride, dilation))
    assert (stream.state == plain.stream.state).all()


@pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
@pytest.mark.parametrize("block", [(1, 8), (8, 8)])
@pytest.mark.parametrize("accumulate", ["fp24", "bf16"])
@pytest.mark.parametrize("sizes", CONVOLUTIONS[:3])
def test_narrow_sums_with_noise(sizes, accumulate, block):
    test_three_products(*sizes, 12, block, 1, "stochastic", accumulate)


@pytest.mark.parametrize("compiled", [True, False])
def test_memory_formats_change_nothing(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(kernels, "library", lambda: None)
    results = []
    for layout in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(0)
        x = torch.randn(2, 6, 7, 9).contiguous(memory_format=layout).requires_grad_()
        w = torch.randn(5, 6, 3, 3).requires_grad_()
        y = functional.conv2d(x, w, None, (2, 1), (1, 2), 1, 1, gn.HBFPFormat(block=(1, 8)))
        y.backward(torch.randn(y.shape).contiguous(memory_format=layout))
        results.append((y, x.grad, w.grad))
    for a, b in zip(*results, strict=True):
        same(a, b.detach().numpy())


def run(call, x, w, scale):
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = call(x, w)
    torch.manual_seed(1)
    y.backward(torch.randn_like(y) * scale)
    return y, x.grad, w.grad


@pytest.mark.parametrize("sizes, fmt, rounding, subnormals", cover(
    [(20, (3, 3), (1, 1), (1, 1), (1, 1)), (35, (3, 2), (2, 1), (1, 0), (1, 2)), (3, (5, 5), (2, 2), (2, 2), (1, 1))],
    [(4, (1, 8)), (4, (1, 16)), (8, (1, 4)), (12, (1, 8))], ["rne", "truncate"], ["flush", "gradual"], turns=3))
def test_depthwise_is_a_convolution_of_each_channel(sizes, fmt, rounding, subnormals):
    (c, size, stride, padding, dilation), (mantissa, block) = sizes, fmt
    formats = gn.Formats.of(gn.HBFPFormat(mantissa=mantissa, block=block, rounding=rounding, subnormals=subnormals))
    torch.manual_seed(c)
    x = torch.randn(2, c, 9, 8) * torch.logspace(-5, 5, c)[None, :, None, None]
    x[0, 0, 2, 2], x[1, 1], x[1, 2, 3, 3] = float("nan"), 0, 1e-40
    w = torch.randn(c, 1, *size) * 1e-4
    w[2] = 0
    for scale in (1, 1e-30, 1e-36):                    # sums on both sides of 2^-126

        def together(x, w):
            return functional.conv2d(x, w, None, stride, padding, dilation, c, formats)

        def apart(x, w):
            return torch.cat([conv.Conv2d.apply(a, b, stride, padding, dilation, formats, None)
                              for a, b in zip(x.chunk(c, 1), w.chunk(c, 0), strict=True)], 1)
        for got, want in zip(run(together, x, w, scale), run(apart, x, w, scale), strict=True):
            same(got, want.detach().numpy())


@pytest.mark.parametrize("block", [(1, 8), (8, 8)])
def test_threads_change_nothing(block):
    results = []
    for count in (1, 3):
        kernels.set_threads(count)
        try:
            torch.manual_seed(0)
            fmt = gn.HBFPFormat(block=block)
            x, w = torch.randn(4, 9, 30, 30), torch.randn(9, 9, 3, 3)
            results.append(run(lambda x, w, fmt=fmt: functional.conv2d(x, w, padding=1, formats=fmt), x, w, 1))
            each = run(lambda x, w, fmt=fmt: functional.conv2d(x, w, padding=1, groups=9, formats=fmt), x, w[:, :1], 1)
            results[-1] += each
        finally:
            kernels.set_threads(None)
    for a, b in zip(*results, strict=True):
        same(a, b.detach().numpy())


@pytest.mark.parametrize("mantissa", [8, 12, 16])
@pytest.mark.parametrize("block", [(1, 32), (1, 12), (8, 8)])
def test_more_pixels_than_a_strip(block, mantissa):
    fmt = gn.HBFPFormat(mantissa=mantissa, block=block)
    x, w = torch.randn(2, 16, 24, 24), torch.randn(5, 16, 3, 3)
    y, _, gw = run(lambda x, w: functional.conv2d(x, w, padding=1, formats=fmt), x, w, 1)
    torch.manual_seed(1)
    g = torch.randn_like(y).permute(0, 2, 3, 1).reshape(-1, 5).numpy()
    rows = unfolded(np.pad(x.permute(0, 2, 3, 1).numpy(), ((0, 0), (1, 1), (1, 1), (0, 0))), (3, 3), (1, 1), (1, 1))
    rows = rows.astype(np.float32)
    matrix = np.ascontiguousarray(w.permute(2, 3, 1, 0).reshape(-1, 5).numpy())
    for got, a, b in ((y.permute(0, 2, 3, 1).reshape(-1, 5), rows, matrix),
                      (gw.permute(2, 3, 1, 0).reshape(-1, 5), np.ascontiguousarray(rows.T), g)):
        want = matmul_blocks(encode_plain(a, fmt), encode_plain(np.ascontiguousarray(b), fmt, axis=0), plain=True)
        same(got, want)


@pytest.mark.parametrize("mantissa", [8, 12, 16])
def test_a_sum_that_has_become_small_is_flushed_by_a_later_strip(mantissa):
    # The first pixel's product is 1.5 * 2^-126; pixels of another strip take 2^-126 of it away.
    x, g = torch.zeros(3, 22500), torch.zeros(2, 22500)
    x[0, 0], g[0, 0] = 1.5 * 2.0 ** -64, 2.0 ** -62
    x[0, 22000], x[0, 22002], g[0, 22001], g[0, 22002] = 2.0 ** -39, 2.0 ** -45, 2.0 ** -75, -2.0 ** -81
    w = torch.ones(2, 3, 1, 1, requires_grad=True)
    formats = gn.Formats.of(gn.HBFPFormat(mantissa=mantissa, block=(1, 4)))
    functional.conv2d(x.view(1, 3, 150, 150), w, formats=formats).backward(g.view(1, 2, 150, 150))
    assert (w.grad == 0).all()
