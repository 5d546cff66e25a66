"""Awkward FP32 data: blocks on both sides of every decision that a conversion and a product make."""

import numpy as np

from hbfp.format import HBFPFormat
from hbfp.golden.bfp import join

#: Kind of block -> how often it is drawn, among these; and those that make all sums that they enter infinite or NaN,
#: which are drawn apart.
KINDS = {"normal": 6, "random bits": 2, "ties": 4, "saturation": 3, "extremes": 3, "outlier": 3, "zero": 1, "tiny": 1,
         "subnormal": 1}
RARE = ("huge", "invalid")


def _scaled(mantissa, exponent):
    """``mantissa * 2^exponent`` as FP32 bits, exact for the integers that are made here; subnormals are kept."""
    return np.ldexp(mantissa.astype(np.float64), exponent).astype(np.float32).view(np.uint32)


def _kind(rng, kind, elements, fmt):
    """One block of a kind: bit patterns (elements,)."""
    sign = rng.integers(0, 2, elements, np.uint32) << np.uint32(31)
    m, limit, base = fmt.magnitude, fmt.limit, int(rng.integers(-8, 9))
    match kind:
        case "normal":
            return np.ldexp(rng.standard_normal(elements, np.float32), base).view(np.uint32)
        case "random bits":
            field = rng.integers(127 - 24 + base, 127 + base, elements, np.uint32)
            return sign | field << np.uint32(23) | rng.integers(0, 1 << 23, elements, np.uint32)
        case "ties":    # quarter steps: half of them below, on and above the middle between two mantissas
            quarter = rng.integers(0, 4 * limit + 4, elements)
            quarter[rng.integers(elements)] = 4 * limit if rng.integers(2) else 4 * (limit + 1) // 2
            below = rng.integers(-1, 2, elements) * (rng.random(elements) < 0.5)
            bits = _scaled(quarter, base - m - 2)
            return sign | np.where(bits > 0, bits + below.astype(np.uint32), 0).astype(np.uint32)
        case "saturation":
            cut = rng.integers(0, 24, elements, np.uint32)
            return sign | np.uint32((127 + base) << 23) | np.uint32(0x7FFFFF) >> cut << cut
        case "extremes":    # largest sums, and sums that cancel
            return sign * np.uint32(rng.integers(2)) | _scaled(np.full(elements, limit), base - m)
        case "outlier":
            field = rng.integers(100 + base, 127 + base, elements, np.uint32)
            field[rng.integers(elements)] = 127 + base + rng.integers(0, 40)
            return sign | field << np.uint32(23) | rng.integers(0, 1 << 23, elements, np.uint32)
        case "zero":
            return sign
        case "tiny":
            field = rng.integers(1, 60, elements, np.uint32)
            return sign | field << np.uint32(23) | rng.integers(0, 1 << 23, elements, np.uint32)
        case "subnormal":
            return sign | rng.integers(0, 1 << 24, elements, np.uint32)
        case "huge":
            field = rng.integers(230, 255, elements, np.uint32)
            return sign | field << np.uint32(23) | rng.integers(0, 1 << 23, elements, np.uint32)
        case "invalid":
            block = _kind(rng, "normal", elements, fmt)
            block[rng.integers(elements)] = rng.choice(
                np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF], np.uint32))
            return block
    raise AssertionError(kind)


def awkward_blocks(rng: np.random.Generator, count: int, elements: int, fmt: HBFPFormat,
                   rare: float = 0.05) -> np.ndarray:
    """Blocks of mixed kinds: uint32 bit patterns (count, elements); ``rare`` is the share of :data:`RARE`."""
    names = [*KINDS, *RARE]
    weights = np.array([*KINDS.values()]) * (1 - rare) / sum(KINDS.values())
    chances = [*weights, *[rare / len(RARE)] * len(RARE)]
    return np.array([_kind(rng, names[pick], elements, fmt)
                     for pick in rng.choice(len(names), count, p=chances)], np.uint32).reshape(count, elements)


def awkward(rng: np.random.Generator, shape: tuple[int, int], fmt: HBFPFormat, axis: int = -1,
            rare: float | None = None) -> np.ndarray:
    """A float32 matrix of awkward blocks.

    Parameters
    ----------
    rng : numpy Generator
        Source of randomness.
    shape : tuple of int
        Two dimensions.
    fmt : HBFPFormat
        Its blocks are what the awkwardness is about.
    axis : int
        Axis that blocks ``(1, B)`` run along.
    rare : float, optional
        Share of blocks that overflow or are invalid; by default such that most sums meet none.

    Returns
    -------
    ndarray of float32
        Of the given shape.
    """
    side = fmt.terms
    counts = [-(-length // side) for length in shape]
    if rare is None:
        rare = 0.15 / counts[axis]
    if fmt.square:
        pieces = awkward_blocks(rng, counts[0] * counts[1], side * side, fmt, rare)
        pieces = pieces.reshape(counts[0], counts[1], side, side).swapaxes(1, 2)
    else:
        other = shape[0 if axis in (-1, 1) else 1]
        pieces = awkward_blocks(rng, other * counts[axis], side, fmt, rare).reshape(other, counts[axis], side)
    return join(np.ascontiguousarray(pieces).view(np.float32), shape, fmt, axis)
