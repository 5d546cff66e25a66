"""Shift right and round, on integers: every rounding rule of the number formats, once.

All functions take int64 arrays (or ints), broadcast, and accept any shift of 0 or more; they are
exact for ``|value| < 2^62``.
"""

import numpy as np
from numpy.typing import ArrayLike

from .arrays import integers

#: Shifts are cut here: beyond it every value below 2^62 has left the word, and C leaves >> 64 undefined.
_LONGEST = 63


def _operands(value, shift):
    return integers(value, "Value"), np.minimum(integers(shift, "Shift"), _LONGEST)


def shift_rne(value: np.ndarray, shift: ArrayLike) -> np.ndarray:
    """``value * 2^-shift`` to the nearest integer, ties to even; signed."""
    value, shift = _operands(value, shift)
    whole = value >> shift
    rest = value - (whole << shift)                  # 0 .. 2^shift - 1, also for negative values
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), np.int64(1))
    return whole + ((rest > half) | ((rest == half) & (whole & 1 == 1)))


def shift_truncate(value: np.ndarray, shift: ArrayLike) -> np.ndarray:
    """``value * 2^-shift`` toward zero; signed."""
    value, shift = _operands(value, shift)
    return np.where(value < 0, -(np.abs(value) >> shift), value >> shift)


def shift_half_up(value: np.ndarray, shift: ArrayLike) -> np.ndarray:
    """``floor(value * 2^-shift + 1/2)``: to nearest, ties toward plus infinity; signed.

    One adder and one bit: the rule of the ``aligned`` accumulator.
    """
    value, shift = _operands(value, shift)
    below = (value >> np.maximum(shift - 1, 0)) & 1
    return (value >> shift) + np.where(shift > 0, below, 0)


def shift_stochastic(magnitude: np.ndarray, shift: ArrayLike, noise: np.ndarray, noise_bits: int) -> np.ndarray:
    """``floor(magnitude * 2^-shift + noise * 2^-noise_bits)`` with ``noise_bits`` fraction bits kept.

    Parameters
    ----------
    magnitude : array of int
        Not negative, below 2^38.
    shift : array of int
        Not negative.
    noise : array of int
        ``0 .. 2^noise_bits - 1``, one per element.
    noise_bits : int
        Fraction bits kept below the cut; what lies below them is dropped.
    """
    magnitude, shift = _operands(magnitude, shift)
    kept = np.where(shift > noise_bits, magnitude >> np.maximum(shift - noise_bits, 0),
                    magnitude << np.maximum(noise_bits - shift, 0))
    return (kept + integers(noise, "Noise")) >> noise_bits


def bit_length(x: ArrayLike) -> np.ndarray:
    """Bits needed for each non-negative integer of ``x``; 0 for 0."""
    x, length = integers(x, "x"), np.zeros(np.shape(x), np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        big = x >= np.int64(1) << step
        x, length = np.where(big, x >> step, x), length + step * big
    return length + (x > 0)
