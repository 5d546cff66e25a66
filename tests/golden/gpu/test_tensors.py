"""Conversions and products on a GPU equal the NumPy definitions, whatever the numbers and the shape.

Covers: golden/gpu/convert.py, golden/gpu/convert_kernel.py, golden/gpu/product.py, golden/gpu/quick_kernel.py,
golden/gpu/exact_kernel.py, golden/gpu/shared_kernel.py, golden/gpu/overlapped_kernel.py.

The last is compiled for Hopper GPUs alone: only there these tests run it.
"""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden import gpu  # noqa: E402
from golden.bfp import encode_plain  # noqa: E402
from golden.matmul import matmul_blocks  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402
from tests.cases import sweep  # noqa: E402

from ..fast.test_kernels import awkward  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in :RuntimeWarning")    # NumPy's, of the interpreter


def on(device, array):
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def dice(fmt, shape, seed=1):
    """Noise for formats that take it, else None."""
    if fmt.rounding == "stochastic":
        return np.random.default_rng(seed).integers(0, 2 ** fmt.noise_bits, shape, dtype=np.int32)


def same_blocks(got, want):
    for name in ("exponent", "invalid", "mantissa"):
        tensor, array = getattr(got, name).cpu().numpy(), getattr(want, name)
        assert tensor.shape == array.shape and (tensor == array).all(), name
    assert got.axis == want.axis and got.fmt == want.fmt


def same(got, want):
    assert got.dtype == torch.float32 and tuple(got.shape) == want.shape
    assert (got.cpu().numpy().view(np.uint32) == want.view(np.uint32)).all()


def convert(device, x, fmt, axis=-1):
    noise = dice(fmt, x.shape)
    got = gpu.encode(on(device, x), fmt, axis, None if noise is None else on(device, noise))
    same_blocks(got, encode_plain(x, fmt, noise, axis=axis))


ROUNDINGS = ("rne", "truncate", "stochastic")


WIDTHS = [(2, 10, "flush", 8), (8, 10, "gradual", 1), (9, 5, "flush", 8), (16, 6, "gradual", 20)]
BLOCKS = [((1, 16), -1), ((1, 32), 0), ((1, 20), -1), ((16, 16), -1), ((24, 24), -1)]


@pytest.mark.parametrize("width, block, rounding", sweep(
    3, [(WIDTHS[(i + j) % 4], block, rounding) for j, rounding in enumerate(ROUNDINGS)
         for i, block in enumerate(BLOCKS)]))
def test_conversion(device, width, block, rounding):
    """Ties and their neighbours, all exponents, clamped ones, saturation, blocks of zeros, subnormals, Inf and NaN."""
    mantissa, exponent, subnormals, bits = width
    fmt = HBFPFormat(mantissa=mantissa, exponent=exponent, subnormals=subnormals, block=block[0], rounding=rounding,
                     noise_bits=bits)
    convert(device, awkward(mantissa, 52, 101), fmt, block[1])


@pytest.mark.slow
@pytest.mark.parametrize("mantissa", range(2, 17))
@pytest.mark.parametrize("block", [(1, 1), (1, 48), (1, 128), (1, 576), (1, 1024), (32, 32), (64, 64), (2, 2)])
def test_conversion_of_every_width(device, mantissa, block):
    for rounding in ROUNDINGS:
        for axis in (-1, 0):
            convert(device, awkward(mantissa), HBFPFormat(mantissa=mantissa, block=block, rounding=rounding), axis)


@pytest.mark.parametrize("shape, axis", [
    ((40,), 0), ((2, 20, 18), 1), ((2, 2, 17, 5), 0), ((2, 3, 17, 2), -3), ((2, 1, 19, 21), 2), ((5, 0, 4), 1),
    ((0, 7), 1), ((0, 7), 0)])
@pytest.mark.parametrize("block, rounding", [((1, 16), "rne"), ((1, 16), "stochastic"), ((16, 16), "rne"),
                                             ((16, 16), "stochastic")])
def test_any_shape_and_axis(device, shape, axis, block, rounding):
    if len(shape) < 2 and block[0] > 1:
        pytest.skip("tiles need two dimensions")
    rng = np.random.default_rng(3)
    x = np.ldexp(rng.standard_normal(shape), rng.integers(-20, 20, shape)).astype(np.float32)
    convert(device, x, HBFPFormat(mantissa=6, block=block, rounding=rounding), axis)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_narrow_floats_and_strides(device, dtype):
    x = torch.from_numpy(awkward(5)[:40, :50].copy()).to(dtype)
    for view in (x, x.T, x[::2, 3:]):
        fmt = HBFPFormat(mantissa=5)
        same_blocks(gpu.encode(view.to(device), fmt), encode_plain(view.float().contiguous().numpy(), fmt))


def operands(scale, size, seed=1):
    """x and w with rows and columns of many magnitudes, blocks of zeros, and an Inf and a NaN."""
    rng, (m, k, n) = np.random.default_rng(seed), size
    x, w = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    if scale is not None:
        x, w = np.ldexp(x, rng.integers(-30, 30, (m, 1)) + scale), np.ldexp(w, rng.integers(-30, 30, (1, n)) + scale)
    x, w = x.astype(np.float32), w.astype(np.float32)
    x[1, :k * 2 // 3], w[:, 3] = 0, 0
    x[2, 3], w[-1, 5] = np.nan, np.inf
    return x, w


def multiply(device, x, w, left, right, accumulate):
    got = gpu.matmul(on(device, x), on(device, w), left, right, accumulate)
    same(got, matmul_blocks(encode_plain(x, left), encode_plain(w, right, axis=0), accumulate, plain=True))


CASES = [((8, 8), (1, 32)), ((4, 4), (16, 16)), ((8, 8), (1, 128)), ((2, 9), (1, 16)), ((16, 4), (24, 24)),
         ((16, 16), (1, 40)), ((12, 16), (1, 4))]


SCALES = [(None, "flush"), (-62, "gradual"), (-62, "flush"), (48, "flush")]
SUMS = ["fp32", "aligned", "fp24", "bf16"]


@pytest.mark.parametrize("mantissas, block, scale, subnormals, accumulate", sweep(
    17, [(*case, *scale, accumulate) for case in CASES for scale in SCALES for accumulate in SUMS]))
def test_product(device, mantissas, block, scale, subnormals, accumulate):
    """Sums that stay in range, and all that do not: below the least normal number, subnormal, infinite."""
    left, right = (HBFPFormat(mantissa=m, block=block, subnormals=subnormals) for m in mantissas)
    multiply(device, *operands(scale, (33, min(70, 10 * block[1]), 18)), left, right, accumulate)


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", ["fp32", "aligned", "fp24", "bf16"])
@pytest.mark.parametrize("mantissa", range(2, 17))
@pytest.mark.parametrize("block", [(1, 16), (1, 48), (1, 64), (1, 256), (1, 1024), (32, 32), (64, 64)])
def test_product_of_every_width(device, mantissa, block, accumulate):
    for scale in (None, 0, -40, -80, 64):
        fmt = HBFPFormat(mantissa=mantissa, block=block)
        multiply(device, *operands(scale, (40, 1200 if block[1] > 200 else 150, 70)), fmt, fmt, accumulate)


@pytest.mark.parametrize("block", [(1, 16), (1, 128)])
@pytest.mark.parametrize("first, second", [(-80, -60), (60, 57), (105, -60), (-20, 10)])
def test_what_the_quick_kernels_leave(device, block, first, second):
    """Sums that are flushed, products beyond 2^128 whose sum is not, a scale beyond what a step holds; what they take.

    The second half of a block is the first with the other sign, but for one number: its sum is far smaller than parts.
    """
    fmt, rng, half = HBFPFormat(mantissa=8, block=block), np.random.default_rng(6), (-1, block[1] // 2)
    x, w = (rng.integers(64, 127, (rows, 64)).reshape(rows, *half) for rows in (5, 7))
    x, w = np.concatenate((x, -x), 2).reshape(5, 128), np.concatenate((w, w), 2).reshape(7, 128)
    w[:, ::block[1]] += 1
    multiply(device, np.ldexp(x, first).astype(np.float32), np.ldexp(w.T, second).astype(np.float32), fmt, fmt, "fp32")


@pytest.mark.parametrize("m, k, n", [(0, 40, 5), (3, 0, 5), (3, 40, 0), (1, 1, 1)])
def test_empty_products(device, m, k, n):
    x, w = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    for fmt in (HBFPFormat(), HBFPFormat(block=(16, 16)), HBFPFormat(mantissa=12)):
        for accumulate in ("fp32", "aligned", "bf16"):
            multiply(device, x, w, fmt, fmt, accumulate)


def test_stacks(device):
    """Leading dimensions as torch has them."""
    fmt, other = HBFPFormat(mantissa=5, block=(16, 16)), HBFPFormat(mantissa=7, block=(1, 16))
    rng = np.random.default_rng(0)
    for first, second in (((2, 2), (2, 2)), ((2,), ()), ((1, 2), (2, 1)), ((), (2,)), ((0,), (0,))):
        x = rng.standard_normal((*first, 5, 20)).astype(np.float32)
        w = rng.standard_normal((*second, 20, 5)).astype(np.float32)
        got = gpu.matmul(on(device, x), on(device, w), fmt, other)
        lead = np.broadcast_shapes(first, second)
        x, w = np.broadcast_to(x, (*lead, 5, 20)), np.broadcast_to(w, (*lead, 20, 5))
        want = np.empty((*lead, 5, 5), np.float32)
        for i in np.ndindex(*lead):
            want[i] = matmul_blocks(encode_plain(x[i], fmt), encode_plain(w[i], other, axis=0))
        same(got, want)


def test_products_with_noise(device):
    fmt = HBFPFormat(mantissa=4, block=(1, 16), rounding="stochastic")
    x, w = operands(None, (20, 50, 9))
    noise, other = dice(fmt, x.shape), dice(fmt, w.shape, 2)
    got = gpu.matmul(on(device, x), on(device, w), fmt, noise_a=on(device, noise), noise_b=on(device, other))
    same(got, matmul_blocks(encode_plain(x, fmt, noise), encode_plain(w, fmt, other, axis=0)))


@pytest.mark.parametrize("block", [(1, 16), (8, 8)])
def test_stacked_products_with_noise(device, block):
    fmt = HBFPFormat(mantissa=4, block=block, rounding="stochastic")
    x, w = operands(None, (20, 50, 9))
    noise, other = dice(fmt, x.shape), dice(fmt, w.shape, 2)
    first, second = (on(device, np.stack([t, t[::-1]])) for t in (x, noise))
    got = gpu.matmul(first, on(device, w), fmt, noise_a=second, noise_b=on(device, other))
    right = encode_plain(w, fmt, other, axis=0)
    for i, step in enumerate((1, -1)):
        same(got[i], matmul_blocks(encode_plain(x[::step], fmt, noise[::step]), right))


@pytest.mark.parametrize("terms, terms_of_k, spread", [(16, 100, 0), (32, 96, -37), (128, 300, 30), (20, 90, 0)])
def test_products_block_by_block(device, monkeypatch, terms, terms_of_k, spread):
    """Sums of all blocks first, some at a time, then these in their order."""
    from golden.gpu import product
    fmt, made, true = HBFPFormat(block=(1, terms)), [], product._by_blocks
    monkeypatch.setattr(product, "_LONG", 2)
    monkeypatch.setattr(product, "_KEPT", 4 * 20 * 24 * 3)
    monkeypatch.setattr(product, "_by_blocks", lambda *args: made.append(true(*args)))
    rng = np.random.default_rng(7)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((20, terms_of_k), (terms_of_k, 24)))
    x *= np.float32(10.0 ** spread)
    x[3, 5] = np.nan
    got = gpu.matmul(on(device, x), on(device, w), fmt)
    assert made
    same(got, matmul_blocks(encode_plain(x, fmt), encode_plain(w, fmt, axis=0)))


def test_tiles_for_all_multiprocessors():
    from golden.gpu import product
    assert product._columns(64, 8192, 132) == 128 and product._columns(6, 768, 132) == 64
    assert product._columns(1, 64, 132) == 32 and product._columns(1000, 64, 132) == 64


X = torch.ones(4, 6)
DRAWN = HBFPFormat(rounding="stochastic")


@pytest.mark.parametrize("call, error, line", [
    (lambda x: gpu.encode(x.double(), HBFPFormat()), TypeError, "x must be float32, bfloat16 or float16, not float64"),
    (lambda x: gpu.encode([1.0], HBFPFormat()), TypeError, "x must be of type Tensor, not list"),
    (lambda x: gpu.encode(x, "hbfp8"), TypeError, "Format must be of type HBFPFormat, not str"),
    (lambda x: gpu.encode(x[0], HBFPFormat(block=(16, 16))), ValueError,
     r"Blocks \(16, 16\) need 2 or more dimensions, not 1"),
    (lambda x: gpu.encode(x, HBFPFormat(), 2), ValueError, "Axis must be -2 to 1, not 2"),
    (lambda x: gpu.encode(x, HBFPFormat(), noise=x.int()), ValueError, "Noise needs rounding 'stochastic', not 'rne'"),
    (lambda x: gpu.encode(x, DRAWN), ValueError, "Rounding 'stochastic' needs noise, one integer per element"),
    (lambda x: gpu.encode(x, DRAWN, noise=x), TypeError, "Noise must be integers, not float32"),
    (lambda x: gpu.encode(x, DRAWN, noise=x.int()[:3]), ValueError,
     r"Noise must have shape and device of x, \(4, 6\) on (cpu|cuda:0), not \(3, 6\) on (cpu|cuda:0)"),
    (lambda x: gpu.encode(x.to("meta"), HBFPFormat()), ValueError, "Tensors must be on a CUDA device, not meta"),
    (lambda x: gpu.matmul(x, x, HBFPFormat()), ValueError,
     r"Shapes of a and b must be \(..., M, K\) and \(..., K, N\), not \(4, 6\) and \(4, 6\)"),
    (lambda x: gpu.matmul(x.expand(2, 4, 6), x.T.expand(3, 6, 4), HBFPFormat()), ValueError,
     r"Shapes of a and b must be \(..., M, K\) and \(..., K, N\), not \(2, 4, 6\) and \(3, 6, 4\)"),
    (lambda x: gpu.matmul(x, x.T, HBFPFormat(), HBFPFormat(block=(1, 16))), ValueError,
     "Blocks of a and b must have equal terms along K, not 32 and 16"),
    (lambda x: gpu.matmul(x, x.T, HBFPFormat(), accumulate="fp8"), ValueError,
     "Accumulation must be one of fp32, aligned, fp24, bf16, not 'fp8'"),
    (lambda x: gpu.matmul(x, x.T.long(), HBFPFormat()), TypeError,
     "b must be float32, bfloat16 or float16, not int64"),
    (lambda x: gpu.matmul(x[None], x.T, DRAWN, HBFPFormat(), noise_a=x.int()), ValueError,
     r"Noise must have shape and device of x, \(1, 4, 6\) on \w+(:\d)?, not \(4, 6\) on \w+(:\d)?"),
    (lambda x: gpu.matmul(x, x.T, HBFPFormat(block=(1, 2)), accumulate="aligned", growth=1), ValueError,
     r"Blocks along K must be at most 2\^growth = 2 for accumulation 'aligned', not 3")])
def test_bad_input(device, call, error, line):
    with pytest.raises(error, match=f"^{line}$"):
        call(X.to(device))


def test_what_the_copy_engine_takes(device):
    """Wider rows, odd pitches and shared scales are left to the other kernels."""
    from golden.gpu.convert import converted
    from golden.gpu.product import taken

    def lines(mantissa, block, k=256):
        return converted(torch.ones(1, 6, k, device=device), HBFPFormat(mantissa=mantissa, block=block),
                         across=True)[0]
    for mantissa, block, wanted in ((8, (1, 32), True), (8, (1, 128), True), (9, (1, 128), False), (8, (1, 24), False),
                                    (8, (32, 32), True), (8, (128, 128), False), (8, (1, 256), False)):
        assert taken(lines(mantissa, block)) == wanted, (mantissa, block)
    made = lines(8, (1, 128))
    assert not taken(replace(made, scales=made.scales.contiguous()))      # six numbers from block to block
    assert taken(lines(8, (1, 32), 40)) and not taken(replace(made, data=made.data[:, 1:]))
