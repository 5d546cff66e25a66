"""Random bits of stochastic rounding: the xorshift32 generators of the converter's lanes.

The law is docs/numerics.md, section 6. The (tensor, block, element) -> (lane, beat) map is here and
nowhere else: element i (row-major) of a block sits in beat ``i // lanes`` of that block, lane
``i % lanes``; blocks follow each other in stream order, padding included.
"""

import numpy as np
from numba import njit

from .bfp import block_axis, cut, join
from .spec.format import check_range

#: 2^32 divided by the golden ratio: spreads the lanes' starting points.
LANE_STEP = 0x9E3779B9


def lane_seeds(seed, lanes):
    """Starting state of each lane, uint32: ``seed XOR ((l + 1) * 0x9E3779B9 mod 2^32)``, 0 becomes 1."""
    check_range("Seed", seed, 0, 2 ** 32 - 1)
    check_range("Lanes", lanes, 1, 1 << 20)
    steps = (np.arange(1, lanes + 1, dtype=np.uint64) * np.uint64(LANE_STEP) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    state = np.uint32(seed) ^ steps
    return np.where(state == 0, np.uint32(1), state)


def step(state):
    """Next xorshift32 state (13, 17, 5) of a uint32 array."""
    state = state ^ state << np.uint32(13)
    state = state ^ state >> np.uint32(17)
    return state ^ state << np.uint32(5)


@njit(cache=True)
def _run(state, out):
    for beat in range(out.shape[0]):
        for lane in range(out.shape[1]):
            s = np.int64(state[lane])                # Numba widens uint32 shifts: mask by hand
            s = (s ^ s << 13) & 0xFFFFFFFF
            s = s ^ s >> 17
            s = (s ^ s << 5) & 0xFFFFFFFF
            state[lane] = s
            out[beat, lane] = s


class Stream:
    """The lanes' generators, running on from one tensor to the next.

    Parameters
    ----------
    seed : int
        0 to 2^32 - 1.
    lanes : int
        Elements a beat (``Design.encode_lanes``).

    Attributes
    ----------
    state : ndarray of uint32
        (lanes,): all there is to save and restore.
    """

    def __init__(self, seed, lanes):
        self.state = lane_seeds(seed, lanes)

    def words(self, beats):
        """Next states: uint32 ``(beats, lanes)``, each lane stepped before use."""
        out = np.empty((beats, len(self.state)), np.uint32)
        _run(self.state, out)
        return out

    def draw(self, shape, fmt, *, axis=-1):
        """Noise of the next tensor; see :func:`noise`."""
        axis, lanes = block_axis(len(shape), fmt, axis), len(self.state)
        elements = fmt.block[0] * fmt.terms
        if elements % lanes:
            raise ValueError(f"Lanes must divide the {elements} elements of a block, not {lanes!r}")
        pieces = cut(np.empty(shape, np.int8), fmt, axis).shape
        words = self.words(int(np.prod(pieces, dtype=np.int64)) // lanes)
        values = (words >> np.uint32(32 - fmt.noise_bits)).astype(np.int32)
        if fmt.square:
            *lead, rows, side, columns, _ = pieces
            values = values.reshape(*lead, rows, columns, side, side).swapaxes(-2, -3)
        return join(np.ascontiguousarray(values).reshape(pieces), shape, fmt, axis)


def states(seed, lanes, beats):
    """States that the lanes use from reset: uint32 ``(beats, lanes)``."""
    return Stream(seed, lanes).words(beats)


def noise(shape, fmt, lanes, *, seed=1, axis=-1):
    """The noise array that :func:`golden.bfp.encode` needs to repeat the hardware from reset.

    Parameters
    ----------
    shape : tuple of int
        Shape of the tensor; its blocks enter the converter in row-major order of the block grid,
        with ``axis`` moved last.
    fmt : HBFPFormat
        Format; its ``noise_bits`` are the top bits of a state.
    lanes : int
        Elements a beat (``Design.encode_lanes``); divides the elements of a block.
    seed : int
        Seed of the generators, 0 to 2^32 - 1.
    axis : int
        As of :func:`golden.bfp.encode`.

    Returns
    -------
    ndarray of int32
        ``0 .. 2^noise_bits - 1``, of ``shape``.

    Raises
    ------
    ValueError
        If the lanes do not divide the block.
    """
    return Stream(seed, lanes).draw(shape, fmt, axis=axis)
