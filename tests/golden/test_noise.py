"""The lanes' generators and the map from elements to lanes: docs/numerics.md, section 6."""

import numpy as np
import pytest

from golden.noise import Stream, lane_seeds, noise, states, step
from golden.spec.format import HBFPFormat


def words(state, count):
    """xorshift32 with Python integers."""
    out = []
    for _ in range(count):
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        out.append(state)
    return out


def test_published_sequence():
    state = np.array([1], np.uint32)
    for want in (270369, 67634689, 2647435461, 307599695, 2398689233, 745495504):
        state = step(state)
        assert state.tolist() == [want]


def test_lanes_start_apart():
    assert lane_seeds(0, 3).tolist() == [0x9E3779B9, 0x3C6EF372, 0xDAA66D2B]
    assert lane_seeds(0x9E3779B9, 1).tolist() == [1]       # 0 would stay 0


def test_states_step_once_per_beat():
    got = states(77, 4, 50)
    for lane in range(4):
        assert got[:, lane].tolist() == words(int(lane_seeds(77, 4)[lane]), 50)


@pytest.mark.parametrize("block, lanes, axis", [((1, 8), 4, -1), ((1, 8), 8, 0), ((4, 4), 2, -1), ((4, 4), 8, -1)])
def test_map_of_elements_to_lanes_and_beats(block, lanes, axis):
    fmt = HBFPFormat(block=block, rounding="stochastic", noise_bits=8)
    shape = (6, 11)
    got = np.moveaxis(noise(shape, fmt, lanes, seed=5, axis=axis), axis if block[0] == 1 else -1, -1)
    streams = [iter(words(int(s), 1000)) for s in lane_seeds(5, lanes)]
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
