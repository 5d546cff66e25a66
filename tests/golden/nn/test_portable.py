"""The torch-only conversion and product, for other devices, give the bits of the NumPy definitions."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden.bfp import decode_plain as decode  # noqa: E402
from golden.bfp import encode_plain as encode  # noqa: E402
from golden.matmul import matmul  # noqa: E402
from golden.nn import portable  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402

from ..fast.test_kernels import awkward  # noqa: E402


def same(tensor, array):
    assert (tensor.numpy().view(np.uint32) == array.view(np.uint32)).all()


@pytest.mark.parametrize("rounding", ["rne", "truncate", "stochastic"])
@pytest.mark.parametrize("block, axis", [((1, 8), -1), ((1, 32), 0), ((8, 8), -1)])
@pytest.mark.parametrize("mantissa, exponent, subnormals", [(2, 10, "flush"), (8, 10, "gradual"), (16, 5, "flush")])
def test_conversion(mantissa, exponent, subnormals, block, axis, rounding):
    fmt = HBFPFormat(mantissa=mantissa, exponent=exponent, subnormals=subnormals, block=block, rounding=rounding)
    x = awkward(mantissa)
    noise = np.random.default_rng(0).integers(0, 256, x.shape, dtype=np.int32) if rounding == "stochastic" else None
    got, _ = portable.encoded(torch.from_numpy(x), fmt, None if noise is None else torch.from_numpy(noise), axis=axis)
    same(got, decode(encode(x, fmt, noise, axis=axis)))


@pytest.mark.parametrize("scale", [0, -62, 62])
@pytest.mark.parametrize("mantissa", [4, 8, 16])
@pytest.mark.parametrize("block", [(1, 8), (24, 24)])
def test_product(block, mantissa, scale):
    rng, fmt = np.random.default_rng(1), HBFPFormat(mantissa=mantissa, block=block)
    x, w = (np.ldexp(rng.standard_normal(s), scale).astype(np.float32) for s in ((9, 100), (100, 20)))
    x[2, 3] = np.nan
    a, b = (portable.encoded(torch.from_numpy(t), fmt, axis=axis)[0] for t, axis in ((x, -1), (w, 0)))
    same(portable.product(a, b, fmt, fmt), matmul(x, w, fmt))
