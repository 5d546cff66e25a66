"""Convolutions with ``aligned`` sums have the bits of the plain definition, with patches and without."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.bfp import encode_plain  # noqa: E402
from golden.fast import aligned, kernels  # noqa: E402
from golden.matmul import matmul_blocks  # noqa: E402
from golden.nn import functional, unfold  # noqa: E402
from golden.number.blocks import Blocks  # noqa: E402

from .strided import gradient  # noqa: E402
from .test_conv import CONVOLUTIONS, same, unfolded  # noqa: E402

BLOCKS = [gn.HBFPFormat(mantissa=4, block=(1, 8)), gn.HBFPFormat(block=(1, 4)),
          gn.HBFPFormat(mantissa=16, block=(1, 8)), gn.HBFPFormat(block=(1, 8), subnormals="gradual"),
          gn.HBFPFormat(block=(1, 5), rounding="truncate")]


def plain(a, b, fmt, **widths):
    """``a b``, ``a`` in rows."""
    b = encode_plain(np.ascontiguousarray(b), fmt, axis=0)
    return matmul_blocks(encode_plain(a, fmt), b, "aligned", plain=True, **widths)


def turned(a, b, fmt, **widths):
    """``a^T b``, both reduced over their rows."""
    a, b = (encode_plain(np.ascontiguousarray(part), fmt, axis=0) for part in (a, b))
    return matmul_blocks(Blocks(a.mantissa.T, a.exponent.T, a.invalid.T, fmt), b, "aligned", plain=True, **widths)


def check(x, w, geometry, fmt, scale=1.0, **widths):
    """The three products of a convolution are the plain ones."""
    stride, padding, dilation = geometry
    o, size = len(w), tuple(w.shape[2:])
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = functional.conv2d(x, w, None, *geometry, 1, gn.Formats.of(fmt, accumulate="aligned", **widths))
    g = torch.randn_like(y) * scale
    y.backward(g)
    last = np.pad(x.detach().permute(0, 2, 3, 1).numpy(), ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)))
    rows = unfolded(last, size, stride, dilation).astype(np.float32)
    top = g.permute(0, 2, 3, 1).reshape(-1, o).numpy()
    same(y.permute(0, 2, 3, 1).reshape(-1, o), plain(rows, w.detach().permute(2, 3, 1, 0).reshape(-1, o).numpy(), fmt,
                                                       **widths))
    same(w.grad.permute(2, 3, 1, 0).reshape(-1, o), turned(rows, top, fmt, **widths))
    same(x.grad, gradient(lambda part, back: plain(part.rows, back, fmt, **widths), g, w.detach(), (9, 8), *geometry))


@pytest.mark.parametrize("fmt", BLOCKS)
@pytest.mark.parametrize("c, o, size, stride, padding, dilation", CONVOLUTIONS)
def test_three_products(c, o, size, stride, padding, dilation, fmt):
    torch.manual_seed(c)
    x = torch.randn(2, c, 9, 8) * 2 ** torch.randint(-6, 6, (2, c, 9, 8))
    x[0, :, :4, :4] = 0
    for scale in (1, 1e-36):                           # sums on both sides of 2^-126
        check(x, torch.randn(o, c, *size) * scale, (stride, padding, dilation), fmt, scale)


@pytest.mark.parametrize("widths", [{"guard": 0}, {"guard": 9, "growth": 11}, {"guard": 16, "growth": 9}])
def test_other_accumulators(widths):
    torch.manual_seed(1)
    x = torch.randn(2, 8, 9, 8) * 2 ** torch.randint(-6, 6, (2, 8, 9, 8))
    check(x, torch.randn(8, 8, 3, 3), ((1, 1), (1, 1), (1, 1)), BLOCKS[0], **widths)


@pytest.mark.parametrize("where", ["x", "w", "g"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_invalid_blocks(value, where, monkeypatch):
    torch.manual_seed(0)
    x, w, g = torch.randn(1, 16, 5, 5), torch.randn(8, 16, 3, 3), torch.randn(1, 8, 5, 5)
    {"x": x, "w": w, "g": g}[where][0, 3, 1, 1] = value
    results = []
    for general in (False, True):
        if general:
            monkeypatch.setattr(unfold, "integers", lambda *_: False)
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = functional.conv2d(a, b, None, 1, 1, 1, 1, gn.Formats.of(gn.HBFPFormat(block=(1, 8)), accumulate="aligned"))
        y.backward(g)
        results.append((y, a.grad, b.grad))
    for got, want in zip(*results, strict=True):
        same(got, np.ascontiguousarray(want.detach().numpy()))
    assert any(t.isnan().any() for t in results[0])


@pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
@pytest.mark.parametrize("c, o, options, calls", [
    (8, 8, {}, 11), (8, 5, {}, 10), (5, 8, {}, 10), (8, 8, {"rounding": "stochastic"}, 0),
    (8, 8, {"block": (8, 8)}, 0)])
def test_which_products_store_no_patches(c, o, options, calls, monkeypatch):
    made = []
    real = aligned.multiply
    monkeypatch.setattr(aligned, "multiply", lambda *args, **more: made.append(bool(more)) or real(*args, **more))
    formats = gn.Formats.of(gn.HBFPFormat(**{"block": (1, 8), **options}), accumulate="aligned")
    layer = gn.HBFPConv2d(c, o, 3, padding=1, bias=False, fmt=formats)
    layer(torch.randn(1, c, 6, 6).requires_grad_()).sum().backward()
    assert sum(made) == calls                          # one for each tap of the weights' gradient


def test_too_many_blocks():
    formats = gn.Formats.of(gn.HBFPFormat(block=(1, 8)), accumulate="aligned", growth=8)
    layer = gn.HBFPConv2d(8, 8, 1, bias=False, fmt=formats)
    y = layer(torch.randn(1, 8, 46, 45))
    with pytest.raises(ValueError, match=r"^Blocks along K must be at most 2\^growth = 256 for accumulation 'aligned', "
                                         r"not 259$"):
        y.sum().backward()
