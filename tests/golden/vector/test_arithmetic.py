"""Steps of the vector unit equal golden.fp32 with flushed subnormals, which adds and rounds integers."""

import numpy as np
import pytest

from golden import fp32
from golden.vector import arithmetic

STEPS = {"add": arithmetic.add, "mul": arithmetic.mul, "max": arithmetic.larger}
#: Zeros, subnormals, the smallest normal numbers, numbers near 1, large ones, infinities, NaNs.
EDGES = np.array([0, 1, 0x400000, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x1000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001,
                  0x33800000, 0x34000000, 0x7E800000, 0x7EFFFFFF, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000,
                  0x7FFFFFFF], np.uint32)


def held(name, a, b):
    np.testing.assert_array_equal(STEPS[name](a, b), getattr(fp32, name)(a, b, subnormals="flush"))


@pytest.mark.parametrize("name", STEPS)
def test_edges(name):
    both = np.concatenate([EDGES, EDGES | np.uint32(1 << 31)])
    held(name, both[:, None], both)
    assert STEPS[name](both, both).dtype == np.uint32


@pytest.mark.parametrize("name", STEPS)
def test_random_patterns(name):
    """Of all magnitudes, and of close ones."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 1 << 32, (2, 10000), np.uint32)
    held(name, a, b)
    held(name, a, a ^ b >> 8 & np.uint32(0x80FFFFFF))


def test_products_near_the_smallest_number():
    """What rounds up to it is kept, and what rounds below it is flushed, judged by 24 bits."""
    rng = np.random.default_rng(2)
    fraction = rng.integers(0, 1 << 23, (2, 10000), np.uint32)
    exponent = rng.integers(60, 68, (2, 10000), np.uint32)
    a, b = exponent << np.uint32(23) | fraction
    held("mul", a, b)
    near, least = np.uint32([0x3F7FF800, 0x3F7FF000, 0x3F7FFFFF]), np.uint32([0x800400, 0x800800, 0x800000])
    held("mul", near, least)    # 2^-126 times 1 - 2^-26, which rounds to 1, and 1 - 2^-24, which does not
    assert STEPS["mul"](near, least).tolist() == [0x800000, 0, 0]
