"""The compiled quick paths give the bits of the NumPy definitions."""

import numpy as np
import pytest

from golden.bfp import decode_plain as decode
from golden.bfp import encode_plain as encode
from golden.fast import kernels, products, stack
from golden.matmul import matmul, matmul_blocks
from hbfp.format import HBFPFormat

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
BLOCKS = [((1, 8), -1), ((1, 32), -1), ((1, 32), 0), ((1, 7), 0), ((8, 8), -1), ((24, 24), -1), ((1, 1), -1)]


def awkward(seed, rows=75, columns=141):
    """Ties, neighbours of ties, all exponents, zero blocks, subnormals, infinities and NaN."""
    rng = np.random.default_rng(seed)
    field = rng.integers(-10, 3, (rows, columns)) + rng.choice([5, 60, 70, 127, 140, 215, 230, 252], (rows, 1))
    fraction = rng.integers(0, 1 << 23, (rows, columns))
    coarse = rng.integers(4, 24, (rows, columns))
    fraction = (fraction >> coarse << coarse) + rng.integers(-1, 2, (rows, columns))
    bits = field.clip(0, 254) << 23 | fraction.clip(0, (1 << 23) - 1) | rng.integers(0, 2, (rows, columns)) << 31
    bits[rng.random(bits.shape) < 0.05] = 0x80000000
    bits[3:9], bits[30, 40:90] = 0, 0x00000123
    bits[50, 5], bits[51, 100] = 0x7F800000, 0xFFC12345
    return bits.astype(np.uint32).view(np.float32)


def same(a, b):
    assert (a.view(np.uint32) == b.view(np.uint32)).all()


@pytest.mark.parametrize("subnormals", ["flush", "gradual"])
@pytest.mark.parametrize("rounding", ["rne", "truncate", "stochastic"])
@pytest.mark.parametrize("block, axis", BLOCKS)
@pytest.mark.parametrize("mantissa, exponent", [(2, 10), (4, 10), (8, 10), (16, 10), (8, 5), (8, 7)])
def test_conversion_equals_numpy(mantissa, exponent, block, axis, rounding, subnormals):
    x = awkward(mantissa)
    for noise_bits in (1, 8, 20):
        fmt = HBFPFormat(mantissa=mantissa, exponent=exponent, block=block, rounding=rounding, subnormals=subnormals,
                         noise_bits=noise_bits)
        noise = None
        if rounding == "stochastic":
            noise = np.random.default_rng(1).integers(0, 2 ** noise_bits, x.shape, dtype=np.int32)
        blocks = encode(x, fmt, noise, axis=axis)
        got, span = kernels.encoded(x, fmt, noise, axis=axis)
        same(got, decode(blocks))
        used = (blocks.mantissa != 0)
        assert span.invalid and used.any()
        per_element = np.frexp(np.abs(decode(blocks))[used])[1]
        assert span.high >= per_element.max()
        assert span.low <= per_element.min() - 1
        clean = x[:, :5][10:20]
        assert not kernels.encoded(clean, fmt, None if noise is None else np.ascontiguousarray(noise[10:20, :5]),
                                    axis=axis)[1].invalid


def test_conversion_in_place_and_in_parts():
    x = awkward(1)
    for block, axis in BLOCKS:
        fmt = HBFPFormat(block=block)
        want = decode(encode(x, fmt, axis=axis))
        y = x.copy()
        kernels.encoded(y, fmt, axis=axis, out=y)
        same(y, want)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_change_nothing(count):
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((700, 800), (800, 90)))
    want = matmul_blocks(encode(x, HBFPFormat()), encode(w, HBFPFormat(), axis=0))
    kernels.set_threads(count)
    try:
        same(matmul(x, w, HBFPFormat()), want)
        same(kernels.encoded(x, HBFPFormat(block=(24, 24)))[0], decode(encode(x, HBFPFormat(block=(24, 24)))))
    finally:
        kernels.set_threads(None)


@pytest.mark.parametrize("block", [(1, 8), (1, 16), (1, 32), (8, 8), (24, 24), (1, 576)])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 33, 10), (50, 100, 70), (13, 64, 32), (6, 576, 129)])
def test_product_equals_the_definition(block, shape):
    m, k, n = shape
    rng = np.random.default_rng(m)
    x = (rng.standard_normal((m, k)) * 2.0 ** rng.integers(-6, 6, (m, k))).astype(np.float32)
    w = rng.standard_normal((k, n)).astype(np.float32)
    for mantissa in (2, 4, 8, 12):
        fmt = HBFPFormat(mantissa=mantissa, block=block)
        same(matmul(x, w, fmt), matmul_blocks(encode(x, fmt), encode(w, fmt, axis=0), plain=True))


@pytest.mark.parametrize("scale", [-70, -62, -60, -58, -56, -54, -50, 50, 60, 61, 62, 63])
def test_product_near_the_ends_of_the_range(scale):
    rng = np.random.default_rng(2)
    x, w = (np.ldexp(rng.standard_normal(s), scale).astype(np.float32) for s in ((9, 100), (100, 20)))
    x[2, 3] = np.nan
    fmt = HBFPFormat()
    same(matmul(x, w, fmt), matmul_blocks(encode(x, fmt), encode(w, fmt, axis=0), plain=True))


def every_way_is_the_plain_one(x, w, fmt):
    """All paths to a product give the bits of the integer definition; whether FP32 holds the sums."""
    xb, wb = encode(x, fmt), encode(w, fmt, axis=0)
    want = matmul_blocks(xb, wb, plain=True)
    same(matmul(x, w, fmt), want)
    same(matmul_blocks(xb, wb), want)
    same(stack.product(x[None], w[None], stack.Formats([fmt], [fmt]))[0], want)
    return products.exact(fmt, fmt, kernels.encoded(x, fmt)[1], kernels.encoded(w, fmt, axis=0)[1])


@pytest.mark.parametrize("mantissa, terms, fits", [
    (8, 1024, True), (9, 258, True), (9, 259, False), (9, 512, False), (10, 64, True), (10, 65, False), (12, 5, False)])
def test_sums_just_below_and_above_24_bits(mantissa, terms, fits):
    fmt = HBFPFormat(mantissa=mantissa, block=(1, terms))
    x, w = (np.full(s, fmt.limit, np.float32) for s in ((40, terms), (terms, 20)))
    rng = np.random.default_rng(0)
    x[2:] -= rng.integers(0, 4, x[2:].shape)                   # odd and even sums, most of them beyond 24 bits
    w[:, 2:] -= rng.integers(0, 4, w[:, 2:].shape)
    x[1, 3] = -1
    assert every_way_is_the_plain_one(x, w, fmt) == fits


@pytest.mark.parametrize("last, fits", [(-149, False), (-130, False), (-127, False), (-126, True), (-100, True)])
def test_smallest_sums(last, fits):
    # Each block sum is 1, by cancellation: 65 * 64 - 64 * 65 + 1; its value is 2^last, to be flushed below 2^-126.
    fmt = HBFPFormat(block=(1, 4))
    x = np.ldexp(np.array([[65, 64, 1, 0, 65, 64, 1, 0]], np.float32), last // 2)
    w = np.ldexp(np.array([[64, -65, 1, 0, 64, -65, 1, 0]], np.float32).T, last - last // 2)
    assert every_way_is_the_plain_one(x, w, fmt) == fits
    assert matmul(x, w, fmt)[0, 0] == (2.0 ** (last + 1) if fits else 0)


@pytest.mark.parametrize("block, axis", BLOCKS)
def test_zero_blocks_do_not_widen_the_span(block, axis):
    x = np.zeros((80, 80), np.float32)
    fmt = HBFPFormat(block=block)
    span = kernels.encoded(x, fmt, axis=axis)[1]
    assert span.low > span.high
    x[0, 0] = 1
    span = kernels.encoded(x, fmt, axis=axis)[1]
    assert (span.low, span.high) == (1 - 7, 1)


@pytest.mark.parametrize("n", [10, 16, 33, 64, 300])
def test_product_of_transposed_and_scattered_operands(n):
    rng = np.random.default_rng(3)
    a, b = rng.integers(-127, 128, (70, 40)).astype(np.float32), rng.integers(-127, 128, (70, n)).astype(np.float32)
    want = products.product(np.ascontiguousarray(a.T), b, 16)
    same(products.product(a.T, b, 16), want)
    same(products.product(a.T, np.asfortranarray(b), 16), want)
    scattered = np.concatenate([a.T.ravel(), a.T.ravel()])
    same(products.product(scattered, b, 16, rows=np.arange(40) * 70, blocks=np.arange(0, 70, 16)), want)


def test_wrong_threads():
    with pytest.raises(ValueError, match=r"^Threads must be 1 to 1024, not 0$"):
        kernels.set_threads(0)
