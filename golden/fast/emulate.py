"""Compiled :func:`golden.bfp.emulate`."""

import numpy as np

from . import kernels

#: Nanoseconds, roughly, of one thread for an element.
_ELEMENT = 0.5


def rounded(x: np.ndarray, mant_bits: int, tile: int, noise: np.ndarray | None) -> np.ndarray:
    """``x`` (rows, columns) in square tiles, or as one block where ``tile`` is 0; ``noise`` has its shape."""
    x, (rows, columns) = np.ascontiguousarray(x), x.shape
    noise = None if noise is None else np.ascontiguousarray(noise)
    y = np.empty((rows, columns), np.float32)
    dice = 0 if noise is None else noise.ctypes.data
    if not tile:
        kernels.loaded().hbfp_emulate(x.ctypes.data, dice, y.ctypes.data, 1, x.size, 0, mant_bits)
        return y
    tile = min(tile, max(rows, columns))               # beyond, it is one tile as well

    def part(first, last):
        at = 4 * first * columns
        kernels.loaded().hbfp_emulate(x.ctypes.data + at, dice and dice + at, y.ctypes.data + at, last - first, columns,
                                      tile, mant_bits)
    kernels.split(rows, y.size * _ELEMENT, part, tile)
    return y
