"""Float baselines: every kind of float has one, and patterns are the elements' bits."""

from fractions import Fraction

import numpy as np
import pytest

from golden.core.baselines import BASELINES, matmul_bf16, matmul_fma, matmul_fp32, matmul_int
from golden.number.to_fp32 import to_bf16
from hbfp.arithmetic import KINDS
from tests.cases import sweep

from ..exact import exact_fp32
from ..test_matmul import fraction, operands

#: Ordinary numbers, a tie of BF16, both ends, subnormals, Inf; the NaN is the canonical one.
X = np.array([[0.0, -0.0, 1.0, -1.00390625, 3e38, -1e-39], [np.inf, -np.inf, 0.1, 2.0**-126, 255.5, -7.0]], np.float32)


def test_every_number_with_float_results_has_a_baseline():
    assert set(BASELINES) == {name for name, kind in KINDS.items() if kind.float_results and not kind.blocked}
    assert all(each.name == name for name, each in BASELINES.items())


@pytest.mark.parametrize("name", BASELINES)
def test_patterns_have_the_bits_of_an_element(name):
    baseline, bits = BASELINES[name], KINDS[name].bits
    patterns = baseline.patterns(X)
    assert patterns.dtype == np.uint32 and patterns.max() < 2**bits
    with np.errstate(over="ignore"):
        half = X.astype(np.float16).astype(np.float32)
    whole = np.array([[0, 0, 1, -1, 127, 0], [127, -127, 0, 0, 127, -7]], np.float32)
    want = {"bf16": to_bf16(X), "fp16": np.where(np.abs(half) < 2.0 ** -14, 0, half), "int8": whole}.get(name, X)
    assert np.array_equal(baseline.values(patterns).view(np.uint32), want.view(np.uint32))
    assert np.array_equal(baseline.patterns(baseline.values(patterns)), patterns)


@pytest.mark.parametrize("name", BASELINES)
def test_product_rounds_operands_itself(name):
    """The product of numbers and of their elements is the same."""
    baseline, x = BASELINES[name], np.nan_to_num(X, posinf=5.5, neginf=-3.25)
    elements = baseline.values(baseline.patterns(x))
    got = [baseline.matmul(part, part.T.copy(), 2).view(np.uint32) for part in (x, elements)]
    assert np.array_equal(*got)


# --- Products -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale, rows", sweep(2, [(scale, rows) for scale in (0, -62, 57) for rows in (1, 8, 32)]))
def test_fp32_baseline(rows, scale):
    x, w = operands(5, 4, 40, 3, 3, scale)
    want = np.zeros((4, 3), np.int64)
    for i, j in np.ndindex(4, 3):
        acc = 0
        for top in range(0, 40, rows):
            psum = 0
            for k in range(top, min(top + rows, 40)):
                product = exact_fp32(Fraction(float(x[i, k])) * Fraction(float(w[k, j])))
                psum = exact_fp32(fraction(psum) + fraction(product))
            acc = exact_fp32(fraction(acc) + fraction(psum))
        want[i, j] = acc
    assert (matmul_fp32(x, w, rows).view(np.uint32) == want).all()


@pytest.mark.parametrize("rows", [1, 8, 32])
def test_bf16_baseline(rows):
    x, w = operands(6, 4, 40, 3)
    cut = [np.uint32([[round(Fraction(int(v), 65536)) << 16 for v in row] for row in a.view(np.uint32)])
           .view(np.float32) for a in (x, w)]
    for i, j in np.ndindex(4, 3):
        acc = 0
        for top in range(0, 40, rows):
            psum = 0
            for k in range(top, min(top + rows, 40)):
                psum = exact_fp32(fraction(psum) + Fraction(float(cut[0][i, k])) * Fraction(float(cut[1][k, j])))
            acc = exact_fp32(fraction(acc) + fraction(psum))
        assert int(matmul_bf16(x, w, rows)[i, j].view(np.uint32)) == acc


@pytest.mark.parametrize("scale, rows", sweep(2, [(scale, rows) for scale in (0, -70) for rows in (1, 8, 32)]))
def test_fma_baseline(rows, scale):
    """One rounding a term, subnormals kept: at 2^-140 most sums are."""
    x, w = operands(8, 4, 40, 3, scale=scale)
    want = np.zeros((4, 3), np.uint32)
    for i, j in np.ndindex(4, 3):
        acc = 0
        for top in range(0, 40, rows):
            psum = 0
            for k in range(top, min(top + rows, 40)):
                exact = fraction(psum) + Fraction(float(x[i, k])) * Fraction(float(w[k, j]))
                psum = exact_fp32(exact, "gradual")
            acc = exact_fp32(fraction(acc) + fraction(psum), "gradual")
        want[i, j] = acc
    got = matmul_fma(x, w, rows)
    assert (got.view(np.uint32) == want).all()
    assert (np.abs(got) < 2.0 ** -126).any() == (scale < 0)
    if rows > 1 or scale:
        assert (got != matmul_fp32(x, w, rows)).any()


def test_baselines_pass_nan_on():
    x, w = operands(7)
    x[1, 2] = np.nan
    for product in (matmul_fp32, matmul_fma, matmul_bf16):
        got = product(x, w, 16).view(np.uint32)
        assert (got[1] == 0x7FC00000).all() and not np.isnan(got[[0, 2]].view(np.float32)).any()


def test_int_baseline_is_exact():
    x = np.full((2, 1000), 32767)
    assert (matmul_int(x, x.T) == 1000 * 32767 ** 2).all()


@pytest.mark.parametrize("call, error, message", [
    (lambda: matmul_fp32(X[:, :3], X.T[:3], 0), ValueError, r"^Rows must be 1 to 256, not 0$"),
    (lambda: matmul_int(np.ones((2, 3)), np.ones((3, 2), int)), TypeError, r"^x must be integers, not float64$"),
])
def test_wrong_operands(call, error, message):
    with pytest.raises(error, match=message):
        call()
