"""Compiled products equal the integer definitions where sums are wide, small or aligned.

Covers: golden/fast/aligned.py.
"""

import numpy as np
import pytest

from golden.bfp import encode_plain
from golden.fast import kernels
from golden.matmul import matmul, matmul_blocks
from hbfp.format import HBFPFormat
from tests.cases import cover

from .test_kernels import awkward, same

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")


def check(x, w, fmt, accumulate="fp32", w_fmt=None, **options):
    blocks = encode_plain(x, fmt), encode_plain(w, w_fmt or fmt, axis=0)
    want = matmul_blocks(*blocks, accumulate, plain=True, **options)
    same(matmul(x, w, fmt, accumulate, w_fmt=w_fmt, **options), want)
    return want


@pytest.mark.parametrize("mantissa, scale, subnormals, accumulate", cover(
    [2, 8, 10, 12, 16], [0, -40, -60, -62, -66, -72, 60, 63], ["flush", "gradual"], ["fp32", "aligned"], turns=3))
def test_every_width_at_every_scale(mantissa, scale, subnormals, accumulate):
    rng = np.random.default_rng(mantissa)
    for block in ((1, 8), (1, 32), (8, 8), (1, 576)):
        for m, k, n in ((1, 1, 1), (7, 33, 10), (9, 600, 40)):
            x = np.ldexp(rng.standard_normal((m, k)), scale + rng.integers(-6, 6, (m, k))).astype(np.float32)
            w = np.ldexp(rng.standard_normal((k, n)), scale).astype(np.float32)
            x[-1, k // 2] = np.nan if m > 8 else 1
            check(x, w, HBFPFormat(mantissa=mantissa, block=block, subnormals=subnormals), accumulate)


@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
@pytest.mark.parametrize("block", [(1, 8), (1, 32), (8, 8)])
def test_awkward_numbers(block, accumulate):
    x, w = awkward(1), np.ascontiguousarray(awkward(2).T)
    finite = [np.nan_to_num(array, nan=1, posinf=2, neginf=3) for array in (x, w)]
    for mantissa in (4, 8, 12, 16):
        for exponent in (5, 7, 10):
            for subnormals in ("flush", "gradual"):
                fmt = HBFPFormat(mantissa=mantissa, exponent=exponent, block=block, subnormals=subnormals)
                check(x, w, fmt, accumulate)
                check(*finite, fmt, accumulate)


@pytest.mark.parametrize("last", [-151, -150, -149, -148, -128, -127, -126])
@pytest.mark.parametrize("subnormals", ["flush", "gradual"])
def test_wide_sums_on_both_sides_of_the_smallest(last, subnormals):
    # Block sums 1, 2, 3 times 2^last by cancellation; 12 bits send them through float64.
    x = np.array([[1500, 1499, 1, 0] * 2, [1500, 1499, 2, 0] * 2, [1500, 1499, 3, 0] * 2], np.float32)
    w = np.array([[1499, -1500, 1, 2047] * 2, [-1499, 1500, -1, 2047] * 2], np.float32).T
    fmt = HBFPFormat(mantissa=12, block=(1, 4), subnormals=subnormals)
    got = check(np.ldexp(x, last // 2).astype(np.float32), np.ldexp(w, last - last // 2).astype(np.float32), fmt)
    assert (got[0, 0] == 0) == (subnormals == "flush" and last < -126 or last < -149)


@pytest.mark.parametrize("guard", [0, 1, 4, 16])
def test_guard_bits(guard):
    rng = np.random.default_rng(guard)
    x = np.ldexp(rng.standard_normal((20, 256)), rng.integers(-12, 12, (20, 256))).astype(np.float32)
    w = np.ldexp(rng.standard_normal((256, 37)), rng.integers(-12, 12, (256, 37))).astype(np.float32)
    for mantissa in (4, 8, 16):
        check(x, w, HBFPFormat(mantissa=mantissa, block=(1, 16)), "aligned", guard=guard)
        check(x, w, HBFPFormat(mantissa=mantissa, block=(1, 16)), "aligned", guard=guard,
              w_fmt=HBFPFormat(mantissa=16, block=(1, 16)))


def test_aligned_sums_beyond_every_shift_and_of_equal_size():
    x = np.ones((12, 64), np.float32)
    for step in (0, 1, 30, 31, 32, 33, 62, 63, 64, 80):
        w = np.ones((64, 33), np.float32)
        w[::2] = -1
        w[1] = 3
        w[16:32] *= np.float32(2.0 ** step)
        w[32:48] *= np.float32(2.0 ** -step)
        for mantissa in (3, 16):
            check(x, w, HBFPFormat(mantissa=mantissa, block=(1, 16)), "aligned")


@pytest.mark.parametrize("blocks", [64, 65, 66, 127, 130, 131, 254, 256])
def test_accumulator_at_the_end_of_int32(blocks):
    # 32 * 127^2 * 2^4 per block: 131 of them would leave 30 bits; more guard bits bring the border down.
    fmt = HBFPFormat(block=(1, 32))
    x, w = np.full((3, 32 * blocks), 127, np.float32), np.full((32 * blocks, 5), 127, np.float32)
    for guard in (4, 5):
        check(x, w, fmt, "aligned", guard=guard)
        check(-x, w, fmt, "aligned", guard=guard)


@pytest.mark.parametrize("blocks", [257, 520, 1100])
@pytest.mark.parametrize("guard", [4, 9, 12])
def test_sums_that_leave_int32_and_some_that_do_not(blocks, guard):
    # Of the rows, some stay near zero, some go beyond and come back, some stay there; each alone, and all together.
    fmt, rng = HBFPFormat(block=(1, 32)), np.random.default_rng(guard)
    x, w = np.full((5, 32 * blocks), 127, np.float32), np.full((32 * blocks, 3), 127, np.float32)
    x[0] *= rng.choice([-1, 1], 32 * blocks)
    x[1, 32 * blocks // 2:] *= -1
    x[2] = rng.integers(-127, 128, 32 * blocks)
    x[3] *= -1
    x[:, 5], w[:, 1] = np.ldexp(x[:, 5], 3), rng.integers(-127, 128, 32 * blocks)
    check(x, w, fmt, "aligned", guard=guard, growth=12)
    for row in x:
        check(row[None].copy(), w, fmt, "aligned", guard=guard, growth=12)


def test_nothing_to_add():
    for shape in ((0, 5, 3), (3, 5, 0), (3, 0, 4)):
        m, k, n = shape
        for accumulate in ("fp32", "aligned"):
            check(np.zeros((m, k), np.float32), np.zeros((k, n), np.float32), HBFPFormat(mantissa=12), accumulate)


def test_a_sum_beyond_53_bits_is_rounded_once():
    # 2^37 + 2^13 is half way between two FP32 numbers; the second block adds 2^-16, which float64 cannot hold with it.
    x, w = (np.zeros((2048, 1), np.float32) for _ in range(2))
    x[:512], w[:512], x[512], w[512] = 2 ** 14, 2 ** 14, 2 ** 13, 1
    x[1024:1027, 0], w[1024:1027, 0] = np.ldexp([2 ** 14, 1, 2 ** 14], -8), np.ldexp([2 ** 14, 1, -2 ** 14], -8)
    fmt = HBFPFormat(mantissa=16, block=(1, 1024))
    for sign in (1, -1):
        got = check(sign * np.ascontiguousarray(x.T), w, fmt, "aligned", guard=16, growth=4)
        assert got[0, 0] == sign * (2 ** 37 + 2 ** 14)
