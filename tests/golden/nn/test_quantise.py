"""Straight-through rounding equals the golden model."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.bfp import decode, encode  # noqa: E402
from golden.noise import Stream  # noqa: E402


@pytest.mark.parametrize("shape", [(37,), (5, 37), (2, 3, 21), (0, 4), (2, 0)])
@pytest.mark.parametrize("fmt", [gn.HBFPFormat(mantissa=4, block=(1, 8)), gn.HBFPFormat(mantissa=6, block=(5, 5)),
                                 gn.HBFPFormat(mantissa=8, block=(1, 16), rounding="truncate")])
def test_values_and_gradients(shape, fmt):
    if fmt.square and len(shape) < 2:
        shape = (shape[0], 3)
    x = (torch.randn(shape) * 50).requires_grad_()
    y = gn.quantise(x, fmt)
    want = decode(encode(x.detach().numpy(), fmt))
    assert np.array_equal(y.detach().numpy().view(np.uint32), want.view(np.uint32))
    g = torch.randn(shape)
    y.backward(g)
    assert torch.equal(x.grad, g)


def test_axis_noise_names_and_types():
    x, fmt = torch.randn(6, 21), gn.HBFPFormat(mantissa=3, block=(1, 8), rounding="stochastic")
    want = decode(encode(x.numpy(), gn.HBFPFormat(mantissa=4), axis=0))
    assert np.array_equal(gn.quantise(x, "hbfp4", axis=0).numpy(), want)
    noise = Stream(3, 8).draw((6, 21), fmt)
    assert np.array_equal(gn.quantise(x, fmt, stream=Stream(3, 8)).numpy(), decode(encode(x.numpy(), fmt, noise)))
    half = x.bfloat16()
    assert torch.equal(gn.quantise(half, "hbfp8"), gn.quantise(half.float(), "hbfp8").bfloat16())
    assert gn.quantise(x.to("meta")).is_meta


@pytest.mark.parametrize("call, error, message", [
    (lambda: gn.quantise(torch.ones(3).double()), TypeError, r"^x must be float32, not float64$"),
    (lambda: gn.quantise(torch.ones(3), 8), TypeError,
     r"^Format must be a name such as 'hbfp8' or an HBFPFormat, not 8$"),
    (lambda: gn.quantise(torch.ones(3), gn.HBFPFormat(block=(4, 4))), ValueError,
     r"^x must have 2 dimensions or more, not 1$"),
    (lambda: gn.quantise(torch.ones(3), axis=1), ValueError, r"^Axis must be -1 to 0, not 1$"),
    (lambda: gn.quantise(torch.ones(3), gn.HBFPFormat(rounding="stochastic")), ValueError,
     r"^Rounding 'stochastic' needs a noise stream$")])
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
