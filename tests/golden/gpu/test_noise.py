"""Noise on a GPU has the numbers of the host.

Covers: golden/gpu/noise_kernel.py.
"""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="needs Triton: pip install 'hbfp[gpu]'")

from golden import noise as host  # noqa: E402
from golden import position  # noqa: E402
from golden.gpu import noise  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402
from tests.cases import sweep  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in :RuntimeWarning")    # NumPy's, of the interpreter


def fmt(block=(1, 32), bits=8):
    return HBFPFormat(block=block, rounding="stochastic", noise_bits=bits)


@pytest.mark.parametrize("key, shape, first, bits", [
    (0, (3, 40), 0, 8), (0xFFFFFFFF, (70, 5), 3, 1), (0x80000000, (2, 64), (1 << 27) - 2, 5),
    (0x514E28B7, (1, 1), 7, 8), (5, (0, 4), 0, 8)])
def test_by_position(device, key, shape, first, bits):
    """Keys with and without the sign's bit; places that wrap around."""
    got = noise.drawn(key, shape, fmt(bits=bits), device, first=first)
    assert (got.cpu().numpy() == position.drawn(key, shape, fmt(bits=bits), first=first)).all()
    assert tuple(got.shape) == shape and got.dtype == torch.uint8


def test_by_position_takes_eight_bits(device):
    with pytest.raises(ValueError, match="^Noise width must be at most 8 bits for numbers by position, not 9$"):
        noise.drawn(0, (1, 1), fmt(bits=9), device)


def test_powers_are_steps():
    """Of every generator, by the definition: 2^k steps for small k; the period is 2^32 - 1."""
    state = np.random.default_rng(0).integers(1, 1 << 32, len(noise.TRIPLES), dtype=np.uint32)

    def jumped(level, states):
        bits = states[:, None] >> np.arange(32, dtype=np.uint32) & 1
        return np.bitwise_xor.reduce(np.where(bits, noise.powers()[:, level], np.uint32(0)), 1)
    stream = host.Stream(1, len(state))
    stream.state[:] = state
    found = stream.words(256)
    for level in range(9):
        assert (jumped(level, state) == found[(1 << level) - 1]).all()
    assert (jumped(32, state) == jumped(0, state)).all()


BLOCKS = [((1, 32), 32), ((1, 20), 5), ((16, 16), 16), ((1, 8), 1), ((1, 94), 47)]


def of_stream(state, shape, fmt, axis=-1):
    """The numbers of one tensor."""
    return noise.of_stack(state, 1, [(shape, fmt, axis)])[0][0]


SHAPES = [((9, 40), -1), ((40, 3), 0), ((2, 3, 5), 1)]


@pytest.mark.parametrize("block, lanes, shape, axis", sweep(2, [(*b, *s) for b in BLOCKS for s in SHAPES]))
def test_of_lanes(device, block, lanes, shape, axis, monkeypatch):
    """Tensor after tensor, with the state that the host's stream has; chunks are short, so that there are many."""
    monkeypatch.setattr(noise, "_STEPS", 3)
    stream = host.Stream(7, lanes)
    state = torch.from_numpy(stream.state.view(np.int32).copy()).to(device)
    for bits in (8, 20):
        want = stream.draw(shape, fmt(block, bits), axis=axis)
        got = of_stream(state, shape, fmt(block, bits), axis)
        assert got.shape == want.shape and (got.cpu().numpy() == want).all()
        assert (state.cpu().numpy().view(np.uint32) == stream.state).all()


def test_lanes_of_nothing(device):
    state = torch.ones(8, dtype=torch.int32, device=device)
    assert of_stream(state, (0, 5), fmt()).shape == (0, 5) and (state == 1).all()


def test_lanes_that_do_not_divide_a_block(device):
    line = "Lanes must divide the 32 elements of a block, not 5"
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        of_stream(torch.ones(5, dtype=torch.int32, device=device), (1, 32), fmt())
