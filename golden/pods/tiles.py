"""Operands as tiles, in the mantissas of the machine."""

from dataclasses import replace

import numpy as np

from hbfp.format import HBFPFormat

from ..bfp import encode
from .program import Tile


def padded(values: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """A matrix with zeros at the end of both axes, up to multiples of ``rows`` and of ``columns``."""
    return np.pad(values, [(0, -length % side) for length, side in zip(values.shape, (rows, columns), strict=True)])


def converted(values: np.ndarray, fmt: HBFPFormat, machine: HBFPFormat, axis: int) -> Tile:
    """A padded matrix in ``fmt``, in the mantissas of the machine's format: the same numbers, with low bits of zero."""
    blocks = encode(np.ascontiguousarray(values, np.float32), replace(fmt, block=machine.block), axis=axis)
    return Tile(blocks.mantissa << machine.mantissa - fmt.mantissa, blocks.exponent, blocks.invalid)


def x_tile(whole: Tile, row: int, step: int, rows: int, columns: int, terms: int) -> Tile:
    """One tile of X: ``rows`` rows, ``columns`` terms along K in segments of ``terms``."""
    down, across = slice(row * rows, (row + 1) * rows), slice(step * columns, (step + 1) * columns)
    segments = slice(across.start // terms, across.stop // terms)
    return Tile(whole.mantissa[down, across], whole.exponent[down, segments], whole.invalid[down, segments])


def w_tile(whole: Tile, step: int, column: int, rows: int, columns: int, terms: int) -> Tile:
    """One tile of W: ``rows`` terms along K in segments of ``terms``, ``columns`` columns."""
    down, across = slice(step * rows, (step + 1) * rows), slice(column * columns, (column + 1) * columns)
    segments = slice(down.start // terms, down.stop // terms)
    return Tile(whole.mantissa[down, across], whole.exponent[segments, across], whole.invalid[segments, across])
