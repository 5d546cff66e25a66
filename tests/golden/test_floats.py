"""Compiled products of floats have the bits of their definition, extremes and sums that cancel included.

Covers: golden/fast/plain.py.
"""

import numpy as np
import pytest

from golden.core.baselines import BASELINES
from golden.floats import ROUNDED, matmul


def operands(seed, shape, spread):
    """Numbers of many magnitudes, both signs; some zero, a few infinite or NaN, and every row again with its sign
    turned, so that sums cancel."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)).astype(np.float32)
    x[rng.random(shape) < 0.1] = 0
    x[:, 1::2] = np.where(rng.random(x[:, 1::2].shape) < 0.5, -x[:, :shape[1] // 2 * 2:2], x[:, 1::2])
    return x


@pytest.mark.parametrize("name", list(ROUNDED))
@pytest.mark.parametrize("seed, spread", [(0, 3), (1, 30), (2, 64), (3, 75)])
def test_bits_of_the_definition(name, seed, spread):
    x, w = operands(seed, (9, 23), spread), operands(seed + 10, (23, 13), spread)
    if seed == 1:
        x[0, :3], x[1, 4], w[5, 2] = (np.inf, -np.inf, np.nan), np.inf, -np.inf
    for rows in (4, 8, 32):
        np.testing.assert_array_equal(matmul(name, x, w, rows).view(np.uint32),
                                      BASELINES[name].matmul(x, w, rows).view(np.uint32))


@pytest.mark.parametrize("exponent", [-126, -127])
def test_a_product_is_flushed_after_it_is_rounded(exponent):
    """At the edge: what rounds up to 2^-126 stays, what lies below it in 24 bits is zero."""
    near = np.float32(1) - np.float32(2) ** np.arange(-24, -20, dtype=np.float32)
    x, w = (near * np.float32(2) ** -60)[:, None], np.full((1, 1), np.float32(2) ** (exponent + 60))
    w = np.concatenate([w, w * (np.float32(1) + np.float32(2) ** -23)], 1)
    found, want = matmul("fp32", x, w, 4), BASELINES["fp32"].matmul(x, w, 4)
    np.testing.assert_array_equal(found.view(np.uint32), want.view(np.uint32))
    assert exponent == -127 and not found.any() or exponent == -126 and (found == 0).any() and found.any()
