"""The lanes' generators and the map from elements to lanes: docs/numerics.md, section 6."""

import pathlib

import numpy as np
import pytest

from golden.noise import Stream, lane_starts, lane_triples, mix, noise, states
from golden.spec.noise import LANE_STEP, RESET, TRIPLES
from hbfp.format import HBFPFormat

MASK = 0xFFFFFFFF
#: 2^32 - 1 is their product.
PRIMES = (3, 5, 17, 257, 65537)


def words(state, triple, count):
    """xorshift32 with Python integers."""
    a, b, c = triple
    out = []
    for _ in range(count):
        state ^= state << a & MASK
        state ^= state >> b
        state ^= state << c & MASK
        out.append(state)
    return out


def start(seed, lane):
    """First state of a lane, with Python integers."""
    return mix(seed) ^ ((lane + 1) * LANE_STEP & MASK) or 1


def apply(matrix, vector):
    """A matrix over GF(2), as the words that its columns are, times a vector."""
    word = 0
    for bit, column in enumerate(matrix):
        if vector >> bit & 1:
            word ^= column
    return word


def power(matrix, exponent):
    """By squaring."""
    result = [1 << bit for bit in range(32)]
    while exponent:
        if exponent & 1:
            result = [apply(matrix, column) for column in result]
        matrix, exponent = [apply(matrix, column) for column in matrix], exponent >> 1
    return result


def test_seeds_are_mixed():
    assert mix(1) == RESET == 0x514E28B7
    assert mix(0) == 0
    assert mix(2 ** 32 - 1) == 0x81F16F39                   # the finaliser's published values
    assert len({mix(seed) for seed in range(10_000)}) == 10_000


def test_triples_are_the_page_s():
    assert len(TRIPLES) == len(set(TRIPLES)) == 47
    page = (pathlib.Path(__file__).parents[2] / "docs" / "numerics.md").read_text()
    assert ", ".join(f"({a},{b},{c})" for a, b, c in TRIPLES) in page


@pytest.mark.parametrize("triple", TRIPLES, ids=str)
def test_every_generator_has_the_full_period(triple):
    identity = [1 << bit for bit in range(32)]
    matrix = [words(1 << bit, triple, 1)[0] for bit in range(32)]
    assert power(matrix, MASK) == identity
    for prime in PRIMES:
        assert power(matrix, MASK // prime) != identity


def test_lanes_start_apart():
    h = mix(7)
    assert lane_starts(7, 3).tolist() == [h ^ 0x9E3779B9, h ^ 0x3C6EF372, h ^ 0xDAA66D2B]
    assert lane_starts(0x0AF4F978, 1).tolist() == [1]       # mixed it is 0x9E3779B9; 0 would stay 0


def test_states_step_once_per_beat_each_lane_with_its_triple():
    got = states(77, 50, 40)
    for lane in range(50):
        assert got[:, lane].tolist() == words(start(77, lane), TRIPLES[lane % 47], 40)


def test_lanes_beyond_the_triples_take_them_again():
    assert lane_triples(95)[[0, 46, 47, 94]].tolist() == [[1, 5, 16], [17, 15, 20], [1, 5, 16], [1, 5, 16]]


def test_seeds_share_nothing():
    """Any two of 100 seeds: noise over the 32 lanes of a beat is as little alike as of independent generators."""
    beats = np.stack([states(seed, 32, 8) for seed in range(100)]).transpose(1, 0, 2) / 2.0 ** 32
    pairs = np.triu_indices(100, 1)
    alike = [np.abs(np.corrcoef(beat)[pairs]).mean() for beat in beats]
    assert abs(np.mean(alike) - 0.146) < 0.0146, alike      # one triple for all lanes gives 0.755
    assert len({tuple(first) for first in beats[0]}) == 100


@pytest.mark.parametrize("block, lanes, axis", [((1, 8), 4, -1), ((1, 8), 8, 0), ((4, 4), 2, -1), ((4, 4), 8, -1)])
def test_map_of_elements_to_lanes_and_beats(block, lanes, axis):
    fmt = HBFPFormat(block=block, rounding="stochastic", noise_bits=8)
    shape = (6, 11)
    got = np.moveaxis(noise(shape, fmt, lanes, seed=5, axis=axis), axis if block[0] == 1 else -1, -1)
    streams = [iter(words(start(5, lane), TRIPLES[lane], 1000)) for lane in range(lanes)]
    for top in range(0, got.shape[0], block[0]):
        for left in range(0, got.shape[1], block[1]):
            for i in range(block[0] * block[1]):
                value = next(streams[i % lanes]) >> 24
                row, column = top + i // block[1], left + i % block[1]
                if row < got.shape[0] and column < got.shape[1]:      # padding takes its steps too
                    assert got[row, column] == value


def test_stream_runs_on():
    fmt, stream = HBFPFormat(block=(1, 8), rounding="stochastic"), Stream(5, 4)
    both = np.concatenate([stream.draw((3, 16), fmt), stream.draw((2, 16), fmt)])
    assert (both == noise((5, 16), fmt, 4, seed=5)).all()


def test_wrong_lanes():
    with pytest.raises(ValueError, match=r"^Lanes must divide the 32 elements of a block, not 5$"):
        noise((4, 32), HBFPFormat(), 5)
    with pytest.raises(ValueError, match=r"^Lanes must be 1 to 1048576, not 0$"):
        noise((4, 32), HBFPFormat(), 0)


def test_wrong_seed():
    with pytest.raises(ValueError, match=r"^Seed must be 0 to 4294967295, not -1$"):
        states(-1, 4, 1)
