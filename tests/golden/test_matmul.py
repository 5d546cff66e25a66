"""Matrix products: order, widths, special blocks; docs/numerics.md, sections 3 to 5.

Covers: golden/ways.py.
"""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from golden.bfp import Blocks, encode, spread
from golden.fast import kernels
from golden.matmul import mantissa_dot, matmul, matmul_blocks
from golden.number.to_fp32 import to_fp32
from golden.ways import DEFINITIONS, QUICK
from hbfp.format import HBFPFormat

from .exact import exact_fp32

BLOCKS = [(1, 8), (1, 16), (1, 32), (8, 8), (16, 16), (24, 24)]
WIDTHS = [2, 3, 4, 6, 8, 12, 16]


def operands(seed, m=5, k=70, n=4, spread_=3, scale=0):
    """Operands whose rows and segments differ in magnitude by powers of two."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, k)) * 2.0 ** rng.integers(-spread_, spread_ + 1, (m, k))
    w = rng.standard_normal((k, n)) * 2.0 ** rng.integers(-spread_, spread_ + 1, (k, n))
    x[0, 8:40] = 0
    return np.ldexp(x, scale).astype(np.float32), np.ldexp(w, scale).astype(np.float32)


def fraction(word):
    return Fraction(float(np.uint32(word).view(np.float32)))


def exact_output(xb, wb, i, j, accumulate, guard=4):
    """One output as bits, with fractions: section 5 read aloud."""
    side, m = xb.fmt.terms, xb.fmt.magnitude
    x, w = xb.mantissa[i].tolist(), wb.mantissa[:, j].tolist()
    ex = spread(xb.exponent, xb.mantissa.shape, xb.fmt, xb.axis)[i].tolist()
    ew = spread(wb.exponent, wb.mantissa.shape, wb.fmt, wb.axis)[:, j].tolist()
    acc, exponent = 0 if accumulate == "fp32" else None, 0
    for top in range(0, len(x), side):
        s = sum(a * b for a, b in zip(x[top:top + side], w[top:top + side], strict=True))
        es = ex[top] + ew[top]
        if accumulate == "fp32":
            p = exact_fp32(s * Fraction(2) ** (es - 2 * m))
            acc = exact_fp32(fraction(acc) + fraction(p))
            continue
        t = Fraction(s * 2 ** guard)
        if acc is None:
            acc, exponent = t, es
            continue
        d = es - exponent
        half = Fraction(1, 2)
        if d > 0:
            acc, exponent = Fraction(floor(acc / 2 ** d + half)), es
        if d < 0:
            t = Fraction(floor(t / 2 ** -d + half))
        acc += t
    return acc if accumulate == "fp32" else exact_fp32(acc * Fraction(2) ** (exponent - guard - 2 * m))


@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("mantissa", WIDTHS)
def test_equals_exact_arithmetic(mantissa, block, accumulate):
    fmt = HBFPFormat(mantissa=mantissa, block=block)
    x, w = operands(mantissa)
    xb, wb = encode(x, fmt), encode(w, fmt, axis=0)
    got = matmul(x, w, fmt, accumulate).view(np.uint32)
    want = [[exact_output(xb, wb, i, j, accumulate) for j in range(w.shape[1])] for i in range(x.shape[0])]
    assert got.tolist() == want


@pytest.mark.parametrize("subnormals", ["flush", "gradual"])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("mantissa", WIDTHS)
def test_quick_path_equals_plain_path(mantissa, block, subnormals):
    fmt = HBFPFormat(mantissa=mantissa, block=block, subnormals=subnormals)
    for scale in (0, -61, -68, 60, 63):                  # in range, underflow and overflow
        x, w = operands(1, 150, 100, 9, 6, scale)
        x[3, 50] = np.nan
        xb, wb = encode(x, fmt), encode(w, fmt, axis=0)
        quick, plain = (matmul_blocks(xb, wb, plain=p).view(np.uint32) for p in (False, True))
        assert (quick == plain).all()
        assert (quick[3] == 0x7FC00000).all()


@pytest.mark.parametrize("accumulate", DEFINITIONS)
def test_every_way_has_its_turn_and_the_bits_of_the_definition(accumulate):
    taken = set()
    for mantissa, subnormals, scale in ((8, "flush", 0), (16, "flush", 0), (8, "gradual", 0), (8, "flush", -68),
                                        (16, "gradual", -520)):
        fmt = HBFPFormat(mantissa=mantissa, block=(1, 16), subnormals=subnormals)
        blocks = [encode(x, fmt, axis=axis) for x, axis in zip(operands(2, spread_=6), (-1, 0), strict=True)]
        blocks = [Blocks(each.mantissa, each.exponent + scale, each.invalid, fmt, each.axis) for each in blocks]
        want = DEFINITIONS[accumulate](*blocks, 4).view(np.uint32)
        serving = [way for way in QUICK[accumulate] if way.serves(*blocks)]
        for way in serving:
            assert (way.gives(*blocks, 4).view(np.uint32) == want).all()
        taken.add((*serving, None)[0])
    quick = set(QUICK[accumulate])
    assert taken == (quick | {None} if accumulate != "aligned" else quick if kernels.library() else {None})


@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
@pytest.mark.parametrize("mantissa", [8, 16])
def test_extreme_mantissas_fit_the_widths(mantissa, accumulate):
    fmt, k = HBFPFormat(mantissa=mantissa), 32 * 256
    ones = np.full((1, k), fmt.limit, np.int32)
    for sign in (1, -1):
        xb = Blocks(ones, np.zeros((1, k // 32), np.int32), np.zeros((1, k // 32), bool), fmt)
        wb = Blocks(sign * ones.T, np.zeros((k // 32, 1), np.int32), np.zeros((k // 32, 1), bool), fmt, -2)
        got = matmul_blocks(xb, wb, accumulate)
        exact = sign * k * fmt.limit ** 2
        if accumulate == "aligned":
            assert got[0, 0] == to_fp32(exact, -2 * fmt.magnitude)
        assert abs(float(got[0, 0]) / (exact * 2.0 ** (-2 * fmt.magnitude)) - 1) < 2e-5


def test_order_of_blocks_is_ascending():
    # 2^24 + 1 + 1: ascending loses both ones, any other order keeps two.
    x = np.array([[2.0 ** 24, 1, 1]], np.float32)
    w = np.ones((3, 1), np.float32)
    fmt = HBFPFormat(block=(1, 1), mantissa=4)
    assert matmul(x, w, fmt)[0, 0] == 2.0 ** 24
    assert matmul(x[:, ::-1], w, fmt)[0, 0] == 2.0 ** 24 + 2


def test_aligned_rounds_half_up():
    # Blocks of one term, guard 0, W = 2: S is -1, 0 or 1; one place right, half up: 1 -> 1, -1 -> 0.
    fmt = HBFPFormat(mantissa=2, block=(1, 1))
    for first, want in ((1.0, 3), (-1.0, 2)):
        x = np.array([[first, 2]], np.float32)
        assert matmul(x, np.ones((2, 1), np.float32), fmt, "aligned", guard=0)[0, 0] == {3: 4.0, 2: 2.0}[want]
        assert matmul(x[:, ::-1], np.ones((2, 1), np.float32), fmt, "aligned", guard=0)[0, 0] == {3: 4.0, 2: 2.0}[want]


@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
@pytest.mark.parametrize("block", [(1, 8), (8, 8)])
def test_invalid_block_reaches_every_output_that_uses_it(block, accumulate):
    fmt = HBFPFormat(block=block)
    x, w = operands(3, 20, 24, 17)
    x[9, 10], w[3, 12] = np.inf, np.nan
    nan = np.isnan(matmul(x, w, fmt, accumulate))
    rows, columns = (slice(8, 16), slice(8, 16)) if block[0] == 8 else (9, 12)
    want = np.zeros((20, 17), bool)
    want[rows], want[:, columns] = True, True
    assert (nan == want).all()


def test_formats_of_both_operands_may_differ():
    x, w = operands(4)
    narrow, wide = HBFPFormat(mantissa=4), HBFPFormat(mantissa=8)
    got = matmul(x, w, narrow, w_fmt=wide)
    xb, wb = encode(x, narrow), encode(w, wide, axis=0)
    assert np.array_equal(got, matmul_blocks(xb, wb, plain=True))
    assert np.abs(got - x @ w).max() < np.abs(matmul(x, w, narrow) - x @ w).max()


@pytest.mark.parametrize("accumulate", ["fp32", "aligned"])
@pytest.mark.parametrize("shape", [(0, 8, 3), (3, 0, 4), (3, 8, 0), (1, 1, 1)])
def test_empty_and_tiny(shape, accumulate):
    m, k, n = shape
    for block in ((1, 32), (8, 8)):
        got = matmul(np.ones((m, k), np.float32), np.ones((k, n), np.float32), HBFPFormat(block=block), accumulate)
        assert got.shape == (m, n) and (got == k).all()


def test_mantissa_dot_is_exact():
    assert mantissa_dot([32767] * 1024, [-32767] * 1024) == -1024 * 32767 ** 2


# --- Bad input ----------------------------------------------------------------------------------


F = np.float32


@pytest.mark.parametrize("call, error, message", [
    (lambda: matmul(np.ones((2, 3)), np.ones((3, 2), F), HBFPFormat()), TypeError, r"^x must be float32, not float64$"),
    (lambda: matmul(np.ones((2, 3), F), np.ones((3, 2), int), HBFPFormat()), TypeError,
     r"^w must be float32, not int64$"),
    (lambda: matmul(np.ones((2, 3), F), np.ones((4, 2), F), HBFPFormat()), ValueError,
     r"^Shapes of x and w must be \(M, K\) and \(K, N\), not \(2, 3\) and \(4, 2\)$"),
    (lambda: matmul(np.ones((2, 3), F), np.ones((3, 2), F), HBFPFormat(), "tree"), ValueError,
     r"^Accumulation must be one of fp32, aligned, fp24, bf16, not 'tree'$"),
    (lambda: matmul(np.ones((2, 3), F), np.ones((3, 2), F), HBFPFormat(), w_fmt=HBFPFormat(block=(1, 8))), ValueError,
     r"^Blocks of x and w must have equal terms along K, not 32 and 8$"),
    (lambda: matmul(np.ones((2, 9), F), np.ones((9, 2), F), HBFPFormat(block=(1, 1)), "aligned", growth=3), ValueError,
     r"^Blocks along K must be at most 2\^growth = 8 for accumulation 'aligned', not 9$"),
    (lambda: matmul(np.ones((2, 9), F), np.ones((9, 2), F), HBFPFormat(mantissa=16, block=(1, 1024)), "aligned",
                    growth=16, guard=16), ValueError,
     r"^Accumulator must be at most 62 bits wide in the golden model, not 73$"),
    (lambda: matmul_blocks(encode(np.ones((2, 3), F), HBFPFormat()), encode(np.ones((3, 2), F), HBFPFormat())),
     ValueError, r"^Blocks of x must run along axis 1 and those of w along axis 0$"),
])
def test_wrong_operands(call, error, message):
    with pytest.raises(error, match=message):
        call()
