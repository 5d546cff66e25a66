"""The torch-only conversion and products, for other devices, give the bits of the NumPy definitions without float64."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import golden.nn as gn  # noqa: E402
from golden.bfp import decode_plain as decode  # noqa: E402
from golden.bfp import encode_plain as encode  # noqa: E402
from golden.matmul import matmul_blocks  # noqa: E402
from golden.nn import portable  # noqa: E402
from golden.nn.optimiser import store  # noqa: E402
from golden.noise import noise as drawn  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402
from tests.cases import cover  # noqa: E402

from ..fast.test_kernels import awkward  # noqa: E402


class Single(TorchDispatchMode):
    """Fails where a tensor is float64, or where FP32 products may be less than FP32."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        y = func(*args, **kwargs or {})
        assert not (torch.is_tensor(y) and y.dtype == torch.float64), func
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.bmm):
            assert torch.get_float32_matmul_precision() == "highest"
        return y


def same(tensor, array):
    assert (tensor.numpy().view(np.uint32) == array.view(np.uint32)).all()


@pytest.mark.parametrize("rounding, bits", [("rne", 8), ("truncate", 8), ("stochastic", 1), ("stochastic", 8),
                                            ("stochastic", 24)])
@pytest.mark.parametrize("block, axis", [((1, 8), -1), ((1, 32), 0), ((8, 8), -1)])
@pytest.mark.parametrize("mantissa, exponent, subnormals", [
    (2, 10, "flush"), (8, 10, "gradual"), (16, 5, "flush"), (16, 10, "gradual"), (3, 6, "gradual")])
def test_conversion(mantissa, exponent, subnormals, block, axis, rounding, bits):
    fmt = HBFPFormat(mantissa=mantissa, exponent=exponent, subnormals=subnormals, block=block, rounding=rounding,
                     noise_bits=bits)
    x = awkward(mantissa)
    noise = drawn(x.shape, fmt, 8, axis=axis) if rounding == "stochastic" else None
    with Single():
        got = portable.encoded(torch.from_numpy(x), fmt, None if noise is None else torch.from_numpy(noise), axis=axis)
        values = got.values()
    want = encode(x, fmt, noise, axis=axis)
    good = ~got.spread(got.invalid, 0, 1).numpy()
    assert (got.mantissa.numpy()[good] == want.mantissa[good]).all()
    assert (got.exponent.numpy() == want.exponent).all() and (got.invalid.numpy() == want.invalid).all()
    same(values, decode(want))


def operands(rng, scale, size=(9, 100, 20)):
    """x and w with rows and columns of many magnitudes, blocks of zeros, and an Inf and a NaN."""
    m, k, n = size
    x, w = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    x = np.ldexp(x, rng.integers(-30, 30, (m, 1)) + scale).astype(np.float32)
    w = np.ldexp(w, rng.integers(-30, 30, (1, n)) + scale).astype(np.float32)
    x[1, :70], w[:, 3] = 0, 0
    x[2, 3], w[-1, 5] = np.nan, np.inf
    return x, w


@pytest.mark.parametrize("sizes, scale, subnormals, accumulate", cover([
    ((4, 4), (1, 8)), ((8, 8), (24, 24)), ((8, 8), (1, 1024)), ((9, 9), (1, 256)), ((12, 12), (1, 2)),
    ((12, 12), (1, 4)), ((16, 16), (1, 32)), ((16, 16), (1, 1024)), ((16, 4), (1, 32)), ((3, 16), (16, 16))],
    [0, -40, -62, -80, 48, 64], ["flush", "gradual"], ["fp32", "aligned"], turns=3))
def test_product(sizes, scale, subnormals, accumulate):
    """On both sides of what 24 bits hold; sums that underflow, are subnormal, overflow."""
    mantissas, block = sizes
    left, right = (HBFPFormat(mantissa=m, block=block, subnormals=subnormals) for m in mantissas)
    x, w = operands(np.random.default_rng(1), scale, (9, 1200, 20) if block[1] > 200 else (9, 100, 20))
    a, b = (portable.encoded(torch.from_numpy(t), fmt, axis=axis) for t, fmt, axis in ((x, left, -1), (w, right, 0)))
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")         # TF32, where a device has it
    try:
        with Single():
            got = portable.product(a, b, accumulate)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    same(got, matmul_blocks(encode(x, left), encode(w, right, axis=0), accumulate, plain=True))


@pytest.mark.parametrize("total, exponent", [
    (2 ** 24 - 1, -150), (2 ** 24 - 1, -149), (2 ** 23 + 1, -150), (1, -150), (1, -149), (3, -150), (1, -126),
    (-1, -127), (2 ** 24, -150), (2 ** 24 - 1, 104), (2 ** 24, 104), (1, 127), (1, 128), (-5, -300), (7, 300), (0, 5)])
@pytest.mark.parametrize("subnormals", ["flush", "gradual"])
def test_sums_of_24_bits_become_fp32(total, exponent, subnormals):
    """The edges: least normal number, half of the least subnormal one, largest number."""
    from golden.number.to_fp32 import to_fp32
    got = portable._scaled(torch.tensor([float(total)]), torch.tensor([exponent], dtype=torch.int32), subnormals)
    want = to_fp32(np.array([total]), np.array([exponent]), subnormals)
    same(got, want)
    same(portable._rounded(torch.tensor([total]), torch.tensor([exponent]), subnormals), want)


def test_wide_sums_become_fp32():
    from golden.number.to_fp32 import to_fp32
    rng = np.random.default_rng(3)
    total = rng.integers(-2 ** 61, 2 ** 61, 4000) >> rng.integers(0, 61, 4000)
    total[:200] = 2 ** 25 * rng.integers(1, 2 ** 20, 200) + rng.choice([2 ** 24, 2 ** 24 - 1, 2 ** 24 + 1], 200)
    exponent = rng.integers(-220, 90, 4000)
    for subnormals in ("flush", "gradual"):
        same(portable._rounded(torch.from_numpy(total), torch.from_numpy(exponent), subnormals),
             to_fp32(total, exponent, subnormals))


def test_too_many_blocks_for_aligned():
    fmt = HBFPFormat(mantissa=4, block=(1, 1))
    a, b = portable.encoded(torch.ones(1, 257), fmt), portable.encoded(torch.ones(257, 1), fmt, axis=0)
    with pytest.raises(ValueError, match=r"^Blocks along K must be at most 2\^growth = 256 for accumulation 'aligned', "
                                         r"not 257$"):
        portable.product(a, b, "aligned")


FORMATS = {
    "hbfp8": gn.Formats.of("hbfp8"), "tile": gn.Formats.of(HBFPFormat(mantissa=6, block=(24, 24))),
    "roles": gn.Formats.of(HBFPFormat(mantissa=4, block=(1, 16)), w=HBFPFormat(mantissa=16, block=(1, 16)),
                           g=HBFPFormat(mantissa=12, block=(1, 16), rounding="truncate")),
    "stochastic": gn.Formats.of(HBFPFormat(mantissa=5, block=(1, 8), rounding="stochastic")),
    "stochastic tile": gn.Formats.of(HBFPFormat(mantissa=5, block=(8, 8), rounding="stochastic")),
    "aligned": gn.Formats.of("hbfp6", accumulate="aligned"),
}


def passes(make, x, formats):
    """Output, gradients and noise of a converted layer after a forward and a backward pass."""
    torch.manual_seed(4)
    layer = gn.convert(make(), formats, seed=7)
    x = x.clone().requires_grad_()
    y = layer(x)
    y = y[0] if isinstance(y, tuple) else y
    y.backward(torch.linspace(-3, 5, y.numel()).sin().view(y.shape))
    return [y.detach(), x.grad, *(p.grad for p in layer.parameters() if p.dim() > 1), *layer.buffers()]


@pytest.mark.parametrize("formats", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("make, shape", [
    (lambda: torch.nn.Linear(50, 13), (3, 5, 50)), (lambda: torch.nn.Conv2d(8, 6, 3, padding=1), (2, 8, 7, 5)),
    (lambda: torch.nn.Conv2d(6, 6, 3, stride=2, groups=6), (2, 6, 9, 8)),
    (lambda: torch.nn.ConvTranspose1d(4, 3, 3), (2, 4, 6)), (lambda: torch.nn.LSTM(9, 11), (4, 3, 9))],
    ids=["linear", "conv", "depthwise", "transposed", "lstm"])
def test_layers(make, shape, formats):
    """As they run on a device; the same noise is drawn in the same order."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 3
    want = passes(make, x, formats)
    with portable.forced():
        got = passes(make, x, formats)
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a.contiguous().view(torch.int32), b.contiguous().view(torch.int32))


def test_layers_are_really_forced(monkeypatch):
    """Or the test above would compare kernels with themselves."""
    from golden.nn import products
    calls = []
    true = portable.product
    monkeypatch.setattr(products.portable, "product", lambda *args, **more: calls.append(1) or true(*args, **more))
    passes(lambda: torch.nn.Conv2d(8, 6, 3), torch.ones(1, 8, 4, 4), FORMATS["hbfp8"])
    assert not calls
    with portable.forced():
        passes(lambda: torch.nn.Conv2d(8, 6, 3), torch.ones(1, 8, 4, 4), FORMATS["hbfp8"])
    assert len(calls) == 3


def test_weights_of_an_optimiser():
    w = torch.randn(40, 50)
    want, got = w.clone(), w.clone()
    store(want)
    with portable.forced():
        store(got)
    assert torch.equal(got, want) and not torch.equal(got, w)


@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
def test_stochastic_convolutions_draw_once_for_an_element(accumulate, monkeypatch):
    """Where blocks divide the channels, on every way: kernels, NumPy, a device."""
    from golden.fast import kernels
    formats = gn.Formats.of(HBFPFormat(mantissa=5, block=(1, 8), rounding="stochastic"), accumulate=accumulate)
    x = torch.randn(2, 16, 6, 5, generator=torch.Generator().manual_seed(1))
    x[1, 3, 2, 2] = float("nan")

    def run():
        return [part.contiguous().view(torch.int32) for part in passes(lambda: torch.nn.Conv2d(16, 8, 3), x, formats)]
    want = run()
    with portable.forced():
        forced = run()
    monkeypatch.setattr(kernels, "library", lambda: None)
    for a, b, c in zip(want, forced, run(), strict=True):
        assert torch.equal(a, b) and torch.equal(a, c)
