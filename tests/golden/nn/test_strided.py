"""Gradients of all phases from operands that are converted once have the bits of each phase by itself."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.fast import kernels  # noqa: E402
from golden.nn import conv_products, strided  # noqa: E402

from .test_conv import same  # noqa: E402

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")

#: Sides of the input, kernel, stride, padding, dilation: all taps meet, some phases have none, g ends within patches.
SIZES = [((8, 8), (4, 4), (2, 2), (1, 1), (1, 1)), ((7, 9), (1, 2), (2, 3), (0, 1), (1, 1)),
         ((11, 6), (3, 2), (3, 1), (2, 0), (2, 3)), ((5, 6, 7), (3, 1, 2), (2, 2, 1), (1, 0, 2), (1, 1, 2)),
         ((4, 9, 8), (2, 3, 4), (1, 2, 3), (0, 3, 1), (2, 1, 1))]


def case(sizes, scale=1.0):
    """g and w of a convolution of 5 channels into 16, and the rest of the call."""
    sides, size, stride, padding, dilation = sizes
    torch.manual_seed(len(sides))
    pixels = [(s + 2 * p - d * (k - 1) - 1) // step + 1
              for s, k, step, p, d in zip(sides, size, stride, padding, dilation, strict=True)]
    g, w = torch.randn(2, 16, *pixels) * scale, torch.randn(16, 5, *size)
    g *= 2.0 ** torch.randint(-9, 9, g.shape)
    g[0, :8, 0], w[:8, 1] = 0, 1e-30
    return g, w, (2, 5, *sides), stride, padding, dilation


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("scale", [1.0, 2.0 ** -70, 2.0 ** 100])
@pytest.mark.parametrize("options, sums", [
    ({}, "fp32"), ({"mantissa": 12}, "fp24"), ({"mantissa": 16, "block": (1, 16)}, "bf16"), ({}, "aligned"),
    ({"mantissa": 13}, "aligned"), ({"rounding": "truncate", "subnormals": "gradual"}, "fp32")])
def test_as_phase_by_phase(sizes, scale, options, sums, monkeypatch):
    given = case(sizes, scale)
    formats = gn.Formats.of(gn.HBFPFormat(**{"block": (1, 8)} | options), accumulate=sums)
    assert strided.serves(given[0], given[3], formats)
    got = conv_products.input_gradient(*given, formats, None)
    monkeypatch.setattr(strided, "serves", lambda *_: False)
    want = conv_products.input_gradient(*given, formats, None)
    same(got, np.ascontiguousarray(want.numpy()))


@pytest.mark.parametrize("sums", ["fp32", "aligned"])
@pytest.mark.parametrize("which", [0, 1])
def test_what_is_no_number(sums, which, monkeypatch):
    given, formats = case(SIZES[0]), gn.Formats.of(gn.HBFPFormat(block=(1, 8)), accumulate=sums)
    given[which].view(-1)[3] = float("nan")
    assert (strided.input_gradient(*given, formats) is None) == (sums == "aligned")
    got = conv_products.input_gradient(*given, formats, None)
    monkeypatch.setattr(strided, "serves", lambda *_: False)
    same(got, np.ascontiguousarray(conv_products.input_gradient(*given, formats, None).numpy()))
    assert got.isnan().any() and not got.isnan().all()


@pytest.mark.parametrize("options, stride", [
    ({}, (1, 1)), ({"block": (1, 32)}, (2, 2)), ({"block": (8, 8)}, (2, 2)), ({"rounding": "stochastic"}, (2, 2))])
def test_whom_it_does_not_serve(options, stride):
    formats = gn.Formats.of(gn.HBFPFormat(**{"block": (1, 8)} | options))
    assert not strided.serves(torch.ones(1, 16, 3, 3), stride, formats)


def test_too_many_blocks_of_a_phase():
    formats = gn.Formats.of(gn.HBFPFormat(block=(1, 8)), accumulate="aligned", growth=2)
    with pytest.raises(ValueError, match=r"^Blocks along K must be at most 2\^growth = 4 for accumulation 'aligned', "
                                         "not 8$"):
        conv_products.input_gradient(*case(SIZES[0]), formats, None)
