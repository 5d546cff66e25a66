"""Emulator mode against the published rule, computed the published way in wider arithmetic.

The oracle rounds log2 to float32 from float64 and takes its ceiling, as the emulator's
``ceil(log2(max + 1e-8))`` does; the model has integer thresholds instead.
"""

import numpy as np
import pytest

from golden.bfp import emulate
from tests.cases import sweep


def oracle(x, m, noise=None):
    """One block; float64 holds every intermediate, each float32 step is one cast."""
    with np.errstate(all="ignore"):
        largest = np.abs(x).max()
        if not np.isfinite(largest):
            return np.full_like(x, np.nan)
        shifted = np.float32(np.float64(largest) + np.float64(np.float32(1e-8)))
        exponent = float(np.ceil(np.log2(np.float64(shifted)).astype(np.float32)))
        interval = 2.0 ** (exponent - m)
        limit = np.float64(np.float32(2.0 ** exponent)) - interval
        scaled = (x.astype(np.float64) / interval).astype(np.float32)
        if noise is not None:
            scaled = (scaled.astype(np.float64) + noise.astype(np.float64)).astype(np.float32)
        y = (np.rint(scaled).astype(np.float64) * interval).astype(np.float32)
        return np.minimum(np.maximum(y, np.float32(-limit)), np.float32(limit))


def same(a, b):
    """Equal bits, any NaN of the oracle standing for the canonical one."""
    nan = np.isnan(b)
    assert (a.view(np.uint32)[nan] == 0x7FC00000).all()
    assert (a.view(np.uint32) == b.view(np.uint32))[~nan].all()


def blocks_near_powers_of_two(rng, size):
    """One block per row: maxima so that max + 1e-8 sits at and around every threshold of every k."""
    k = np.repeat(np.arange(-30, 128), 64)
    offset = np.tile(np.arange(-32, 32), len(k) // 64)
    bits = ((k + 127 << 23) + offset).clip(0, 0x7F7FFFFF)
    maxima = bits.astype(np.uint32).view(np.float32)
    with np.errstate(over="ignore"):
        near = (maxima - np.float32(1e-8)).astype(np.float32)
    maxima = np.where((rng.random(len(k)) < 0.5) & (near > 0), near, maxima)
    scale = rng.choice([1, 0.5, 2.0 ** -8, 2.0 ** -30, 0], (len(k), size))
    x = (rng.uniform(-1, 1, (len(k), size)) * scale).astype(np.float32) * maxima[:, None]
    step = np.ldexp(maxima[:, None], -rng.integers(1, 9, (len(k), size)))
    x = np.where(rng.random(x.shape) < 0.3, (rng.integers(-3, 4, x.shape) * step).astype(np.float32), x)
    x = np.clip(x, -maxima[:, None], maxima[:, None])
    x[:, 0] = maxima * rng.choice([-1, 1], len(k))
    x[rng.random(x.shape) < 0.02] = np.float32(-0.0)
    x[rng.random(x.shape) < 0.02] = np.float32(-1e-42)
    return x


@pytest.mark.parametrize("m", sweep(3, [1, 2, 3, 5, 7, 11, 15, 23]))
def test_a_million_awkward_elements(m):
    rng = np.random.default_rng(m)
    x = blocks_near_powers_of_two(rng, 16)                    # 10112 blocks: 161 792 elements, 1.29 million in all
    x[7, 3], x[9, 5], x[11, 2] = np.nan, np.inf, -np.inf
    noise = (rng.random(x.shape, np.float32) - np.float32(0.5)) if m % 2 else None
    tiles = x.reshape(-1, 4, 4).transpose(1, 0, 2).reshape(4, -1)    # each block a 4 x 4 tile
    noise_tiles = None if noise is None else noise.reshape(-1, 4, 4).transpose(1, 0, 2).reshape(4, -1)
    got = emulate(tiles, m, 4, noise_tiles).reshape(4, -1, 4).transpose(1, 0, 2).reshape(x.shape)
    want = np.stack([oracle(row, m, None if noise is None else noise[i]) for i, row in enumerate(x)])
    same(np.ascontiguousarray(got), want)


def test_tile_zero_is_one_block():
    x = np.random.default_rng(0).standard_normal((3, 5, 7)).astype(np.float32)
    same(emulate(x, 5), oracle(x, 5))


@pytest.mark.parametrize("shape, tile", [((5, 7), 4), ((5, 3, 3), 4), ((9,), 4), ((1, 1), 24)])
def test_ragged_tiles_of_the_flattened_tensor(shape, tile):
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    flat, got = x.reshape(shape[0], -1), emulate(x, 3, tile).reshape(shape[0], -1)
    for i in range(0, flat.shape[0], tile):
        for j in range(0, flat.shape[1], tile):
            part = np.s_[i:i + tile, j:j + tile]
            same(np.ascontiguousarray(got[part]), oracle(flat[part], 3))


def test_keeps_negative_zero_and_subnormals():
    # The top exponent 128 lets the rounded maximum reach infinity, as the published float32 steps do.
    assert np.signbit(emulate(np.array([-0.0, 1], np.float32), 7))[0]
    assert np.isinf(emulate(np.array([3.4028235e38], np.float32), 3)).all()


def test_empty():
    assert emulate(np.zeros((0, 4), np.float32), 7, 4).shape == (0, 4)


@pytest.mark.parametrize("options, message", [
    (dict(mant_bits=0), r"^Mantissa width without sign must be 1 to 23 bits, not 0$"),
    (dict(mant_bits=7, tile=-1), r"^Tile side must be 0 to 1048576 elements, not -1$"),
    (dict(mant_bits=7, noise=np.zeros(3, np.float32)), r"^Noise must have the shape of x, \(4,\), not \(3,\)$")])
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        emulate(np.ones(4, np.float32), **options)
