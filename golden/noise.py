"""Random bits of stochastic rounding: the xorshift32 generators of the converter's lanes.

The law is docs/numerics.md, section 6. The (tensor, block, element) -> (lane, beat) map is here and
nowhere else: element i (row-major) of a block sits in beat ``i // lanes`` of that block, lane
``i % lanes``; blocks follow each other in stream order, padding included.
"""

import math

import numpy as np
from numba import njit

from hbfp.checks import check_range
from hbfp.format import HBFPFormat

from .fast import kernels, lanes
from .number.arrays import check_shape
from .number.blocks import block_axis, cut, join
from .spec.noise import LANE_STEP, TRIPLES

_MASK = 0xFFFFFFFF


def mix(seed: int) -> int:
    """What the host makes of a seed before a converter's port ``i_seed`` takes it, as int.

    Close seeds become words that have nothing in common; no two seeds become the same one.

    Parameters
    ----------
    seed : int
        0 to 2^32 - 1.

    Raises
    ------
    ValueError
        If the seed is out of range.
    """
    check_range("Seed", seed, 0, _MASK)
    h = int(seed)
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    return h ^ h >> 16


def lane_starts(seed: int, lanes: int) -> np.ndarray:
    """State of each lane before its first step, uint32: ``mix(seed) XOR ((l + 1) * 0x9E3779B9 mod 2^32)``, 0 becomes 1.

    Parameters
    ----------
    seed : int
        0 to 2^32 - 1, not mixed.
    lanes : int
        How many.
    """
    check_range("Lanes", lanes, 1, 1 << 20)
    steps = (np.arange(1, lanes + 1, dtype=np.uint64) * np.uint64(LANE_STEP) & np.uint64(_MASK)).astype(np.uint32)
    state = np.uint32(mix(seed)) ^ steps
    return np.where(state == 0, np.uint32(1), state)


def lane_triples(lanes: int) -> np.ndarray:
    """Shifts of each lane's generator: uint8 ``(lanes, 3)``."""
    check_range("Lanes", lanes, 1, 1 << 20)
    return np.array(TRIPLES, np.uint8)[np.arange(lanes) % len(TRIPLES)]


@njit(cache=True)
def _run(state, triples, out):
    for beat in range(out.shape[0]):
        for lane in range(out.shape[1]):
            s = np.int64(state[lane])                # Numba widens uint32 shifts: mask by hand
            s = (s ^ s << np.int64(triples[lane, 0])) & 0xFFFFFFFF
            s = s ^ s >> np.int64(triples[lane, 1])
            s = (s ^ s << np.int64(triples[lane, 2])) & 0xFFFFFFFF
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

    def __init__(self, seed: int, lanes: int) -> None:
        self.state = lane_starts(seed, lanes)

    def words(self, beats: int) -> np.ndarray:
        """Next states: uint32 ``(beats, lanes)``, each lane stepped before use."""
        check_range("Beats", beats, 0, 1 << 40)
        if kernels.library() is not None and len(self.state) <= lanes.MOST:
            return lanes.words(self, beats)
        out = np.empty((beats, len(self.state)), np.uint32)
        _run(self.state, lane_triples(len(self.state)), out)
        return out

    def draw(self, shape: tuple[int, ...], fmt: HBFPFormat, *, axis: int = -1) -> np.ndarray:
        """Noise of the next tensor; see :func:`noise`."""
        check_shape("Shape", shape)
        axis, count = block_axis(len(shape), fmt, axis), len(self.state)
        elements = fmt.block[0] * fmt.terms
        if elements % count:
            raise ValueError(f"Lanes must divide the {elements} elements of a block, not {count!r}")
        pieces = cut(np.empty(shape, np.int8), fmt, axis).shape
        words = self.words(math.prod(pieces) // count)
        values = (words >> np.uint32(32 - fmt.noise_bits)).astype(np.int32)
        if fmt.square:
            *lead, rows, side, columns, _ = pieces
            values = values.reshape(*lead, rows, columns, side, side).swapaxes(-2, -3)
        return join(np.ascontiguousarray(values).reshape(pieces), shape, fmt, axis)


def states(seed: int, lanes: int, beats: int) -> np.ndarray:
    """States that the lanes use from reset: uint32 ``(beats, lanes)``."""
    return Stream(seed, lanes).words(beats)


def noise(shape: tuple[int, ...], fmt: HBFPFormat, lanes: int, *, seed: int = 1, axis: int = -1) -> np.ndarray:
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
