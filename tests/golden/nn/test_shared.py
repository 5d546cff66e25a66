"""The weights' gradient with elements that are converted once has the bits of the one with patches.

Covers: golden/nn/shared.py.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.fast import kernels  # noqa: E402
from golden.nn import conv_products, shared, unfold  # noqa: E402
from tests.cases import cover  # noqa: E402

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
#: Channels, outputs' sides, kernel, stride, dilation, block: rows of several blocks, of one, blocks of several rows.
SHAPES = [(5, (4, 16), (3, 3), (1, 1), (1, 1), 8), (3, (3, 8), (3, 2), (1, 1), (1, 1), 8),
          (4, (6, 8), (5, 3), (1, 1), (1, 1), 16), (2, (16, 4), (9, 3), (1, 1), (1, 1), 16),
          (7, (4, 8), (4, 4), (2, 2), (1, 1), 8), (3, (16, 4), (8, 3), (2, 2), (1, 1), 8),
          (3, (4, 8), (3, 2), (1, 1), (2, 3), 16), (2, (20, 4), (5, 3), (2, 1), (3, 2), 4),
          (4, (2, 4, 8), (3, 3, 3), (1, 1, 1), (1, 1, 1), 8), (3, (3, 4, 8), (4, 3, 2), (2, 1, 2), (1, 1, 2), 8),
          (2, (3, 4, 4), (3, 5, 1), (1, 1, 1), (1, 1, 1), 8)]
OPTIONS = [({}, "fp32"), ({}, "aligned"), ({"mantissa": 4}, "fp24"), ({"rounding": "truncate"}, "bf16"),
           ({"subnormals": "gradual"}, "fp32"), ({"mantissa": 5, "exponent": 6}, "fp32"), ({"mantissa": 14}, "aligned")]


def operands(c, out, size, stride, dilation, scale):
    """Padded inputs and gradients, channels last, with numbers that reach far and zeros."""
    torch.manual_seed(c)
    sides = [(o - 1) * s + d * (k - 1) + 1 for o, k, s, d in zip(out, size, stride, dilation, strict=True)]
    sides[0] += stride[0] - 1                              # pixels that no patch reaches
    x, g = torch.randn(2, *sides, c), torch.randn(2, *out, 6) * scale
    x *= 2.0 ** torch.randint(-8, 8, x.shape)
    x[0, 0], x[1, ..., 0] = 0, 1e-40
    return x, g


@pytest.mark.parametrize("shape, options, scale", cover(SHAPES, OPTIONS, [1, 1e-34], turns=6))
def test_equal_to_patches(shape, options, scale, monkeypatch):
    (*_, size, stride, dilation, terms), (fmt, accumulate) = shape, options
    x, g = operands(*shape[:-1], scale)
    formats = gn.Formats.of(gn.HBFPFormat(**{"block": (1, terms)} | fmt), accumulate=accumulate)
    got = shared.weight_gradient(x, g, formats, size, stride, dilation)
    monkeypatch.setattr(shared, "weight_gradient", lambda *_: None)
    want = unfold.weight_matrix(conv_products.over_pixels(x, g, formats, None, size, stride, dilation)).numpy()
    assert (got.view(np.uint32) == want.view(np.uint32)).all()


@pytest.mark.parametrize("accumulate", ["fp32", "aligned", "fp24"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_invalid_blocks(value, accumulate, monkeypatch):
    x, g = operands(*SHAPES[2][:-1], 1.0)
    x[0, 3, 4, 1], g[1, 2, 3, 4] = value, value
    formats, found = gn.Formats.of(gn.HBFPFormat(block=(1, 16)), accumulate=accumulate), []
    for _ in range(2):
        found.append(conv_products.over_pixels(x, g, formats, None, *SHAPES[2][2:-1]).numpy())
        monkeypatch.setattr(shared, "weight_gradient", lambda *_: None)
    assert (found[0].view(np.uint32) == found[1].view(np.uint32)).all() and np.isnan(found[0]).any()


@pytest.mark.parametrize("out, size, block", [
    ((4, 12), (3, 3), (1, 8)), ((3, 4), (3, 3), (1, 8)), ((4, 16), (1, 1), (1, 8)), ((4, 8), (3, 3), (8, 8)),
    ((5, 12), (3, 3), (1, 24)), ((2, 4), (3, 3), (1, 32))])
def test_what_does_not_fit(out, size, block):
    x, g = operands(3, out, size, (1, 1), (1, 1), 1.0)
    assert shared.weight_gradient(x, g, gn.Formats.of(gn.HBFPFormat(block=block)), size, (1, 1), (1, 1)) is None


@pytest.mark.parametrize("options", [{"rounding": "stochastic"}, {"mantissa": 12}])
def test_which_formats_do_not(options):
    x, g = operands(*SHAPES[0][:-1], 1.0)
    formats = gn.Formats.of(gn.HBFPFormat(**{"block": (1, 8)} | options))
    assert shared.weight_gradient(x, g, formats, *SHAPES[0][2:-1]) is None


def test_many_pixels_go_in_parts():
    """More than the caches hold at once, in all kinds of sums."""
    torch.manual_seed(0)
    x, g = torch.randn(3, 34, 34, 5), torch.randn(3, 32, 32, 70)
    for accumulate in ("fp32", "fp24", "aligned"):
        formats = gn.Formats.of(gn.HBFPFormat(block=(1, 16)), accumulate=accumulate)
        got = shared.weight_gradient(x, g, formats, (3, 3), (1, 1), (1, 1))
        view = unfold.view(x, (3, 3), (1, 1), (1, 1)).reshape(-1, 45).T.contiguous()
        flat = g.reshape(-1, 70).T.contiguous()
        want = gn.functional.linear(view, flat, formats=formats).numpy()
        assert (got.view(np.uint32) == want.view(np.uint32)).all()
