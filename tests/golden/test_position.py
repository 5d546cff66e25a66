"""Numbers by position: docs/numerics.md, section 6."""

import itertools

import numpy as np
import pytest

from golden.bfp import encode
from golden.noise import mix
from golden.position import (
    drawn,
    dropout,
    dropout_key,
    dropped,
    factor,
    numbers,
    pitch,
    step_key,
    tensor_key,
    threshold,
)
from golden.spec.noise import GROUP, NUMBER, SHARED, STRIDE, TAPS
from hbfp.format import HBFPFormat
from tests.golden.machine.plain import number, shared

FMT = HBFPFormat(rounding="stochastic")


@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
def test_numbers_are_those_of_the_page(lanes):
    """Of words of any width, up to the last place."""
    words = np.array([[0, 1, 2, 3], [77, 1000, (1 << 32) // lanes - 1, (1 << 32) // lanes]])
    found = numbers(0xDEADBEEF, words, lanes)
    assert found.tolist() == [[[number(0xDEADBEEF, (int(word) * lanes + lane) % (1 << 32)) for lane in range(lanes)]
                               for word in row] for row in words]


def test_a_tensor_draws_by_row_and_column():
    found = drawn(7, (3, 70), FMT)
    assert pitch(70) == 96 and found.tolist() == [[number(7, 96 * r + c) for c in range(70)] for r in range(3)]


def test_parts_draw_what_the_whole_draws():
    """Bands, parts of a batch and more dimensions change nothing; another width does."""
    whole = drawn(7, (12, 40), FMT)
    assert (np.concatenate([drawn(7, (5, 40), FMT), drawn(7, (7, 40), FMT, first=5)]) == whole).all()
    assert (drawn(7, (2, 6, 40), FMT).reshape(12, 40) == whole).all()
    assert (drawn(7, (12, 33), FMT) == whole[:, :33]).all() and (drawn(7, (12, 65), FMT)[1:, :40] != whole[1:]).any()


def test_fewer_bits_are_the_top_ones():
    fmt = HBFPFormat(rounding="stochastic", noise_bits=3)
    assert (drawn(9, (4, 32), fmt) == drawn(9, (4, 32), FMT) >> 5).all()
    with pytest.raises(ValueError, match="^Noise width must be at most 8 bits for numbers by position, not 9$"):
        drawn(9, (4, 32), HBFPFormat(rounding="stochastic", noise_bits=9))


def rank(rows):
    """Of rows over GF(2), as integers."""
    found = []
    for row in rows:
        for each in found:
            row = min(row, row ^ each)
        if row:
            found.append(row)
    return len(found)


def sums(lane):
    """The bits of a state of which the bits of a lane's number are the sums."""
    return [sum(1 << (tap + STRIDE * lane) % 64 for tap in taps) for taps in TAPS]


@pytest.mark.parametrize("step", [401, pytest.param(1, marks=pytest.mark.slow)])
def test_five_numbers_of_a_state_are_independent(step):
    """Of any five lanes; as turning a state turns the lanes, the first may be lane 0."""
    rows = [sums(lane) for lane in range(GROUP)]
    for lanes in itertools.islice(itertools.combinations(range(1, GROUP), 4), 0, None, step):
        assert rank(itertools.chain(rows[0], *(rows[lane] for lane in lanes))) == 5 * NUMBER


def test_the_number_of_a_group_is_independent_of_any_three():
    own = [sum(1 << (tap + SHARED) % 64 for tap in taps) for taps in TAPS]
    for lanes in itertools.combinations(range(GROUP), 3):
        assert rank(itertools.chain(own, *(sums(lane) for lane in lanes))) == 4 * NUMBER


@pytest.mark.parametrize("lanes", [1, 4, 32])
@pytest.mark.parametrize("below", [0, 1, 255, 256, 1 << 14, (1 << 16) - 1, 1 << 16])
def test_what_is_dropped_is_what_the_page_says(lanes, below):
    """Where 256 n + u is less, up to the last place: none at 0, all at 2^16."""
    words = np.array([*range(32 // lanes + 1), 1000, (1 << 32) // lanes - 1, (1 << 32) // lanes])
    found = dropped(0xDEADBEEF, words, below, lanes)
    places = [[(int(word) * lanes + lane) % (1 << 32) for lane in range(lanes)] for word in words]
    assert found.tolist() == [[256 * number(0xDEADBEEF, place) + shared(0xDEADBEEF, place) < below for place in row]
                              for row in places]
    assert found.any() if below >= 1 << 14 else below or not found.any()
    assert found.all() or below < 1 << 16


def test_dropout_of_a_tensor():
    """By rows and columns, whatever the dimensions; shares are 16 bits, ties to even, and what is kept is 1 / (1 - p).
    """
    found = dropout(7, (3, 70), 0.3)
    gone = [[256 * number(7, 96 * r + c) + shared(7, 96 * r + c) < 19661 for c in range(70)] for r in range(3)]
    assert found.dtype == np.float32 and found.tolist() == np.where(gone, 0, np.float32(1 / 0.7)).tolist()
    assert (dropout(7, (2, 6, 40), 0.3) == dropout(7, (12, 40), 0.3).reshape(2, 6, 40)).all()
    assert (dropout(7, (40,), 0.3) == dropout(7, (1, 40), 0.3)).all() and dropout(7, (), 0).tolist() == 1
    assert [threshold(p) for p in (0, 0.3, 0.5, 2.5 / 65536, 1)] == [0, 19661, 32768, 2, 65536]
    assert [factor(p) for p in (0, 0.5, 0.1, 1)] == [1, 2, np.float32(1 / 0.9), 0]
    assert not dropout(7, (3, 70), 1).any() and (dropout(7, (3, 70), 0) == 1).all()


def test_shares_of_dropout():
    """As many as the share says, over keys, rows and columns: within four standard deviations."""
    for p in (0.1, 0.5, 0.9):
        gone = np.array([dropout(key, (64, 64), p) == 0 for key in range(64)])
        for axis in ((0, 1, 2), (0, 1), (0, 2), (1, 2)):
            shares = gone.mean(axis)
            assert abs(shares - p).max() < 4.5 * (p * (1 - p) * shares.size / gone.size) ** 0.5


def test_keys_of_dropouts_are_no_tensors():
    seeds = [3, 4, 5]
    drops = {dropout_key(seed, number) for seed in seeds for number in range(50)}
    tensors = {tensor_key(seed, number, role) for seed in seeds for number in range(50) for role in "xwg"}
    assert len(drops) == 150 and not drops & tensors
    assert dropout_key(5, 2) == mix((mix(5) + 11) % (1 << 32) ^ 0x9E3779B9)


def chi(values, bins):
    """How far from uniform, in standard deviations."""
    expected = len(values) / bins
    return (((np.bincount(values, minlength=bins) - expected) ** 2 / expected).sum() - bins + 1) / (2 * bins - 2) ** 0.5


def test_neighbours_and_keys_are_not_related():
    """XORs of numbers of places 1, a row or 4096 groups apart, and under keys that differ in one bit, are uniform."""
    words = np.arange(1 << 13)
    here = numbers(0x51A3C0D7, words).astype(np.int64)
    for other in (numbers(0x51A3C0D7, words + 1), numbers(0x51A3C0D7, words + 3), numbers(0x51A3C0D7, words + 4096),
                  numbers(0x51A3C0D6, words), numbers(0xD1A3C0D7, words), np.roll(here, 1, axis=1)):
        assert max(chi((here ^ other)[:, lane], 256) for lane in range(GROUP)) < 5
    errors = here - 127.5
    for sums_ in (errors.sum(1), errors.reshape(-1, 32, GROUP).sum(1)):
        assert abs(sums_.var() / (32 * (65536 - 1) / 12) - 1) < 0.1


def test_keys_of_steps_and_tensors_differ():
    found = [step_key(seed, step) for seed in range(3) for step in range(40)]
    found += [tensor_key(seed, product, role) for seed in range(3) for product in range(9) for role in "xwg"]
    assert len(set(found)) == len(found)
    assert step_key(5, 3) == mix(mix(5) + 3) and tensor_key(5, 2, "g") == mix((mix(5) + 10) % 2 ** 32 ^ 0x9E3779B9)
    with pytest.raises(ValueError, match="^Step must be 0 to 4294967295, not -1$"):
        step_key(1, -1)


def test_zeros_and_whole_mantissas_stay():
    x = np.array([[1.0, 0.5, -0.25, 0.0] * 8], np.float32)
    assert (encode(x, FMT, drawn(3, x.shape, FMT)).mantissa == x * 64).all()
