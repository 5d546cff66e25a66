"""Products in whichever arithmetic is quickest give the bits of the NumPy definitions."""

import numpy as np
import pytest

from golden.bfp import encode_plain as encode
from golden.fast import kernels, products
from golden.matmul import matmul_blocks
from hbfp.format import HBFPFormat
from tests.cases import cover

from .test_kernels import every_way_is_the_plain_one, same

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")


def operands(x, w, fmt, w_fmt=None):
    """Converted operands, formats and spans, as ``multiply`` takes them."""
    w_fmt = w_fmt or fmt
    (a, a_span), (b, b_span) = kernels.encoded(x, fmt), kernels.encoded(w, w_fmt, axis=0)
    return a, b, fmt, w_fmt, a_span, b_span


def whether_paired(x, w, fmt):
    """Whether the product goes in pairs; all its ways give the bits of the plain one, however the operands lie."""
    every_way_is_the_plain_one(x, w, fmt)
    a, b, *rest = operands(x, w, fmt)
    want = matmul_blocks(encode(x, fmt), encode(w, fmt, axis=0), plain=True)
    same(products.multiply(np.asfortranarray(a), np.asfortranarray(b), *rest), want)
    same(products.multiply(np.hstack([a, a])[:, :a.shape[1]], b, *rest), want)
    return products.paired(*rest) and not products.exact(*rest)


@pytest.mark.parametrize("mantissa, block", cover(
    [11, 12, 13, 14, 15, 16], [(1, 7), (1, 16), (1, 32), (24, 24), (1, 1)]))
def test_every_mantissa(mantissa, block):
    rng = np.random.default_rng(mantissa)
    fmt = HBFPFormat(mantissa=mantissa, block=block)
    for m, k, n in ((1, 1, 1), (1, 40, 17), (7, 33, 10), (50, 100, 70), (13, 64, 32), (40, 97, 129)):
        x = (rng.standard_normal((m, k)) * 2.0 ** rng.integers(-6, 6, (m, k))).astype(np.float32)
        w = rng.standard_normal((k, n)).astype(np.float32)
        x[m // 2, :k // 2], w[k // 3:, n // 2] = 0, 0
        assert whether_paired(x, w, fmt) == (fmt.sum_width(fmt.terms) > 25)     # else float32 does


@pytest.mark.parametrize("mantissa, terms, paired", [
    (11, 1024, True), (12, 512, True), (12, 513, True), (13, 128, True), (13, 129, True), (14, 32, True),
    (14, 33, True), (15, 8, True), (15, 9, True), (15, 1024, True), (16, 2, True),
    (16, 3, True), (16, 512, True), (16, 513, False)])
def test_sums_just_below_and_above_31_bits(mantissa, terms, paired):
    # One pass up to the first of each mantissa's numbers of terms, then two.
    fmt = HBFPFormat(mantissa=mantissa, block=(1, terms))
    limit, rng = fmt.limit, np.random.default_rng(terms)
    k, turns = 2 * terms, (-1) ** np.arange(2 * terms)
    rows = [np.full(k, limit), np.full(k, -limit), limit * turns, limit - rng.integers(0, 4, k)]
    rows += [limit - rng.integers(0, 4, k) for _ in range(4)]
    # The ends of both parts of a mantissa: -128 and 127 below, +-128 above.
    parts = [v for v in (-128, 127, 128, -32640, 32640, 32639, -32641) if abs(v) <= limit]
    columns = rows + [np.concatenate([[limit], np.full(terms - 1, v)] * 2) for v in parts]
    x, w = np.array(rows, np.float32), np.array(columns, np.float32).T
    assert whether_paired(x, np.ascontiguousarray(w), fmt) == paired


@pytest.mark.parametrize("x_mantissa, w_mantissa", [(16, 8), (8, 16), (16, 4), (4, 16), (12, 16), (16, 12)])
def test_unequal_mantissas(x_mantissa, w_mantissa):
    rng = np.random.default_rng(x_mantissa)
    fmt, w_fmt = (HBFPFormat(mantissa=m, block=(1, 32)) for m in (x_mantissa, w_mantissa))
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((20, 75), (75, 33)))
    args = operands(x, w, fmt, w_fmt)
    assert products.paired(*args[2:])
    same(products.multiply(*args), matmul_blocks(encode(x, fmt), encode(w, w_fmt, axis=0), plain=True))


@pytest.mark.parametrize("block", [(1, 8), (8, 8)])
@pytest.mark.parametrize("mantissa", [12, 16])
@pytest.mark.parametrize("low, high, paired", [
    (-127, None, False), (-126, None, True), (-40, None, True), (None, 127, True), (None, 128, False)])
def test_ends_of_the_range(mantissa, block, low, high, paired):
    # The sum of the last bits' exponents is `low`; or the power of two above the longest sums is 2^high.
    fmt = HBFPFormat(mantissa=mantissa, block=block)
    scale = low if high is None else high - 2 * fmt.magnitude - 4
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-fmt.limit, fmt.limit + 1, s).astype(np.float32) for s in ((12, 20), (20, 24)))
    if block == (8, 8):                                        # multiples of the step of the tile's large numbers
        x[1::4] = rng.integers(-2, 3, x[1::4].shape)
        w[:, 1::4] = rng.integers(-2, 3, w[:, 1::4].shape)
    x[::block[0], ::8], w[::8, ::block[0]] = fmt.limit, fmt.limit
    x[0], w[:, 0] = fmt.limit, fmt.limit
    x[10], w[:, 10] = 0, 0
    x[10, :2], w[1:3, 10] = (fmt.limit, 1), (1, fmt.limit)     # a sum of 2^low
    x, w = np.ldexp(x, scale // 2), np.ldexp(w, scale - scale // 2)
    assert whether_paired(x, w, fmt) == paired


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("where", ["x", "w"])
def test_invalid_blocks_do_not_go_in_pairs(value, where):
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((9, 70), (70, 20)))
    (x if where == "x" else w)[3, 4] = value
    assert not whether_paired(x, w, HBFPFormat(mantissa=12))


@pytest.mark.parametrize("zero", ["x", "w", "both"])
def test_zeros(zero):
    x, w = np.ones((9, 70), np.float32), np.full((70, 20), 2.0 ** 40, np.float32)
    if zero != "w":
        x[:] = 0
    if zero != "x":
        w[:] = 0
    assert whether_paired(x, w, HBFPFormat(mantissa=16))


@pytest.mark.parametrize("mantissa", [12, 16])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_and_scattered_operands(mantissa, count):
    rng = np.random.default_rng(3)
    fmt = HBFPFormat(mantissa=mantissa, block=(1, 16))
    kernels.set_threads(count)
    try:
        for n in (33, 400):
            x, w = (rng.standard_normal(s).astype(np.float32) for s in ((200, 400), (400, n)))
            assert whether_paired(x, w, fmt)
            a, b, *rest = operands(x, w, fmt)
            windows = np.stack([a.ravel()[16 * i:][:400] for i in range(4000)])
            same(products.multiply(a, b, *rest, rows=np.arange(4000) * 16, blocks=np.arange(0, 400, 16)),
                 products.multiply(windows, b, *rest))
    finally:
        kernels.set_threads(None)
