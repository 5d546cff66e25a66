"""Compiled generators give the numbers of :class:`golden.noise.Stream`, in its order."""

import numpy as np
import pytest

from golden import noise
from golden.fast import kernels, lanes
from golden.noise import Stream
from hbfp.format import HBFPFormat

from .test_kernels import awkward, same

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")


def plain(seed, count, beats):
    """Words of the definition, and the states after them."""
    state, out = noise.lane_starts(seed, count), np.empty((beats, count), np.uint32)
    noise._run(state, noise.lane_triples(count), out)
    return out, state


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 24, 31, 32])
def test_words(count):
    stream = Stream(5, count)
    words = np.concatenate([stream.words(beats) for beats in (1, 0, 76)])
    want, state = plain(5, count, 77)
    assert (words == want).all() and (stream.state == state).all()


def test_more_lanes_than_the_kernel_has():
    stream = Stream(5, 48)
    assert not lanes.fits(stream, 48) and (stream.words(9) == plain(5, 48, 9)[0]).all()


def test_which_streams_fit():
    assert [lanes.fits(Stream(1, count), 24) for count in (1, 8, 16, 24, 32)] == [True, True, False, True, False]


@pytest.mark.parametrize("shape", [(1, 1), (40, 64), (75, 141)])
@pytest.mark.parametrize("block, axis, count", [
    ((1, 8), -1, 8), ((1, 8), 0, 4), ((1, 32), -1, 32), ((1, 32), -1, 8), ((1, 32), 0, 32), ((1, 48), -1, 24),
    ((1, 16), -1, 16), ((1, 16), 0, 16), ((8, 8), -1, 8), ((24, 24), -1, 24), ((24, 24), -1, 3)])
def test_conversion_draws_what_the_stream_draws(block, axis, count, shape):
    x = np.ascontiguousarray(awkward(1)[:shape[0], :shape[1]])
    for mantissa, bits in ((4, 8), (16, 20)):
        fmt = HBFPFormat(mantissa=mantissa, block=block, rounding="stochastic", noise_bits=bits)
        stream, other = Stream(3, count), Stream(3, count)
        for _ in range(2):                             # the second tensor goes on where the first ended
            got, span = lanes.encoded(x, fmt, stream, axis=axis)
            want, met = kernels.encoded(x, fmt, other.draw(x.shape, fmt, axis=axis), axis=axis)
            same(np.ascontiguousarray(got), want)
            assert (stream.state == other.state).all()
            assert (span.low, span.high, span.invalid) == (met.low, met.high, met.invalid)


def test_long_rows_are_drawn_in_pieces():
    x = np.random.default_rng(0).standard_normal((3, 5000)).astype(np.float32)
    x[:, 64:96] = x[1:, 1000:2200] = 0
    for terms, count in ((32, 8), (40, 8), (16, 16), (32, 32)):
        fmt = HBFPFormat(block=(1, terms), rounding="stochastic")
        stream, other = Stream(3, count), Stream(3, count)
        for part in (x, x[:, :4990]):                  # contiguous and whole blocks, or not
            want = kernels.encoded(np.ascontiguousarray(part), fmt, other.draw(part.shape, fmt))[0]
            same(lanes.encoded(part, fmt, stream)[0], want)


def test_resumed_generators_skip():
    stream = Stream(9, 24)
    later = lanes.Resumed(stream, 24 * 70000)
    stream.words(70000)
    assert (later.state == stream.state).all()
