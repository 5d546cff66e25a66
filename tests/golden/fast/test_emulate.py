"""The compiled rounding of the research emulator gives the bits of the NumPy definition.

Covers: golden/fast/emulate.py.
"""

import numpy as np
import pytest

from golden.bfp import emulate, emulate_plain
from golden.fast import kernels
from tests.cases import cover

from .test_kernels import awkward, same

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")


def check(x, *options):
    """Both give the same bits, without noise and with."""
    same(emulate(x, *options), emulate_plain(x, *options))
    rng = np.random.default_rng(len(x))
    noise = (rng.random(x.shape, np.float32) - np.float32(0.5)) * rng.choice([1, 0, 1e-39], x.shape).astype(np.float32)
    noise[rng.random(x.shape) < 0.1] = -0.5
    same(emulate(x, *options, noise), emulate_plain(x, *options, noise))


@pytest.mark.parametrize("mant_bits, tile, shape", cover(
    [1, 3, 7, 11, 15, 22, 23], [0, 1, 7, 24, 33, 600], [(1, 1), (75, 141), (3, 5, 7, 9), (50,), (2, 1300)], turns=3))
def test_every_width_and_tile(mant_bits, tile, shape):
    rng = np.random.default_rng(mant_bits)
    for spread in (1, 30):
        check(np.ldexp(rng.standard_normal(shape), rng.integers(-spread, spread, shape)).astype(np.float32), mant_bits,
              tile)


@pytest.mark.parametrize("tile", [0, 1, 8, 24])
def test_awkward_numbers(tile):
    x = awkward(5)
    for each in (x, np.nan_to_num(x, nan=1, posinf=2, neginf=-3), x[:, :5].T):
        for mant_bits in (1, 4, 7, 23):
            check(each, mant_bits, tile)


@pytest.mark.parametrize("exponent", range(-30, 128))
def test_every_exponent_at_its_threshold(exponent):
    fractions = np.array([0, 1, 2, 3, 5, 6, 11, 12, 22, 23, 24, 1 << 22, (1 << 23) - 1])
    largest = (exponent + 127 << 23 | fractions).astype(np.uint32).view(np.float32)
    # What epsilon makes of a number, too: the number less it is on the other side.
    x = np.concatenate([largest, largest - np.float32(1e-8), np.nextafter(largest, np.float32(0))])[:, None]
    x = np.concatenate([x, x * np.float32(-0.37), x * np.float32(0.5), np.zeros_like(x)], 1)
    for mant_bits in (1, 7, 23):
        check(np.ascontiguousarray(x.repeat(4, 0)), mant_bits, 4)


def test_subnormals_zeros_and_the_largest():
    x = np.array([[-0.0, 0.0, 1e-45, -1e-45], [1e-40, -1e-39, 1e-38, 2e-38], [3.4028235e38, -3.4028235e38, 1e38, -0.0],
                  [3.4e38, 1e-45, -1e-40, 1.7e38]], np.float32)
    for mant_bits in (1, 2, 7, 23):
        for tile in (0, 1, 2, 4):
            check(x, mant_bits, tile)


def test_threads_change_nothing():
    x = np.random.default_rng(0).standard_normal((1000, 900)).astype(np.float32)
    kernels.set_threads(3)
    try:
        check(x, 7, 24)
        check(np.asfortranarray(x), 7, 0)
    finally:
        kernels.set_threads(None)
