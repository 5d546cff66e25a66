"""Functions against their exact values, and the compiled ones against the plain.

Covers: golden/fast/functions.py.
"""

import numpy as np
import pytest

from benchmarks.functions_sweep import sweep
from golden import functions
from golden.fast import functions as fast
from golden.spec.tables import FUNCTIONS

NAN, INF, NINF, ZERO, NZERO = 0x7FC00000, 0x7F800000, 0xFF800000, 0, 0x80000000
ONE, HALF, MIN, MAX = 0x3F800000, 0x3F000000, 0x00800000, 0x7F7FFFFF
#: Largest error in ulp over all inputs that each function may have.
LIMITS = dict.fromkeys(FUNCTIONS, 2) | dict(exp=1, recip=1, rsqrt=1)

#: Results at NaN, Inf, -Inf, +0, -0, the largest and the smallest subnormal of both signs.
SPECIAL = {
    "exp": (NAN, INF, ZERO, ONE, ONE),
    "log": (NAN, INF, NAN, NINF, NINF),
    "recip": (NAN, ZERO, NZERO, INF, NINF),
    "rsqrt": (NAN, ZERO, NAN, INF, NINF),
    "tanh": (NAN, ONE, ONE | NZERO, ZERO, NZERO),
    "sigmoid": (NAN, ONE, ZERO, HALF, HALF),
    "gelu": (NAN, INF, NZERO, ZERO, NZERO),
    "silu": (NAN, INF, NZERO, ZERO, NZERO),
    "normcdf": (NAN, ONE, ZERO, HALF, HALF),
}


def spread(count):
    """Bit patterns over the whole range, those near special values, and ordinary numbers."""
    rng = np.random.default_rng(count)
    near = np.arange(-40, 40, dtype=np.int64)
    corners = [0, MIN, MAX, ONE, HALF, INF, 0x40000000, 0x42B17218, 0x42AEAC50, 0x41800000, 0x42000000]
    corners = (np.array(corners)[:, None] + near).ravel()
    parts = [corners, corners | 1 << 31, rng.integers(0, 1 << 32, count), np.arange(0, 1 << 32, 2 ** 32 // count),
             np.arange(256) << 23, np.arange(256) << 23 | 1 << 31, (np.arange(256) << 23) - 1]
    ordinary = rng.normal(size=(3, count)).astype(np.float32) * np.float32([[1], [9], [90]])
    parts = [np.asarray(part).astype(np.int64).astype(np.uint32) for part in parts]
    return np.concatenate([*parts, ordinary.ravel().view(np.uint32)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fast_equals_plain(name):
    x = spread(20_000)
    np.testing.assert_array_equal(fast.evaluate(name, x), functions.evaluate(name, x))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_of_spread_inputs(name):
    assert sweep(name, stride=4099)[0] <= LIMITS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_of_all_inputs(name):
    worst, _, counts = sweep(name)
    assert counts.sum() == 1 << 32
    assert worst <= LIMITS[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name):
    nan, inf, ninf, zero, nzero = SPECIAL[name]
    x = [NAN, 0x7F800001, 0xFFFFFFFF, INF, NINF, ZERO, 1, MIN - 1, NZERO, NZERO | 1, NZERO | MIN - 1]
    want = [nan, nan, nan, inf, ninf, zero, zero, zero, nzero, nzero, nzero]
    assert functions.evaluate(name, x).tolist() == want
    assert fast.evaluate(name, x).tolist() == want


@pytest.mark.parametrize("name, x, want", [
    ("exp", 0x42B17217, 0x7F7FFF84), ("exp", 0x42B17218, INF),             # 88.72283: the last finite result
    ("exp", 0xC2AEAC4F, 0x00800026), ("exp", 0xC2AEAC50, ZERO),            # -87.33654: the last above 2^-126
    ("log", ONE, ZERO), ("log", MIN, 0xC2AEAC50), ("log", MAX, 0x42B17218),
    ("recip", 0x7E800000, MIN), ("recip", 0x7E800001, ZERO), ("recip", MIN, 0x7E800000),
    ("rsqrt", 0x40800000, HALF), ("rsqrt", ONE, ONE),
    ("tanh", MIN, MIN), ("tanh", MAX, ONE), ("sigmoid", MAX, ONE),
    ("gelu", MAX, MAX), ("silu", MAX, MAX), ("gelu", MIN, ZERO), ("silu", MIN | NZERO, NZERO),
])
def test_known_values(name, x, want):
    assert functions.evaluate(name, [x]).tolist() == [want]


@pytest.mark.parametrize("name", ["recip"])
def test_powers_of_two_are_exact(name):
    field = np.arange(1, 254, dtype=np.uint32)
    np.testing.assert_array_equal(functions.recip(field << 23), (254 - field) << 23)


def test_shape_is_kept():
    x = np.full((2, 3), ONE, dtype=np.uint32)
    assert functions.exp(x).shape == fast.evaluate("exp", x).shape == (2, 3)


@pytest.mark.parametrize("module", [functions, fast])
def test_wrong_function(module):
    with pytest.raises(ValueError, match=r"^Function must be one of exp, log, recip, rsqrt, tanh, sigmoid, gelu, "
                                         r"silu, normcdf, not 'sin'$"):
        module.evaluate("sin", [0])
