"""Compiled :func:`golden.bfp.encode` and :func:`golden.bfp.decode`: any shape."""

import ctypes
import math

import numpy as np

from hbfp.format import HBFPFormat

from ..number.blocks import Blocks
from . import kernels, scratch

#: Nanoseconds, roughly, of one thread for an element.
_ELEMENT = 1.0


def _stack(shape, fmt, axis):
    """The tensor as matrices (count, rows, columns), the sides of a block, and the shape of a per-block array."""
    if fmt.square:
        (rows, columns), (high, wide) = shape[-2:], fmt.block
        per_block = (*shape[:-2], -(-rows // high), -(-columns // wide))
    else:
        at = axis + len(shape)
        per_block = (*shape[:at], -(-shape[at] // fmt.terms), *shape[at + 1:])
        if axis == -1:
            rows, columns, high, wide = math.prod(shape[:-1]), shape[-1], 1, fmt.terms
        else:
            rows, columns, high, wide = shape[at], math.prod(shape[at + 1:]), fmt.terms, 1
    count = math.prod(shape) // (rows * columns) if rows * columns else 0
    return count * -(-rows // high), (rows, columns, high, wide), per_block


def mantissas(x: np.ndarray, fmt: HBFPFormat, noise: np.ndarray | None, axis: int,
              dtype: type = np.int32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mantissas (as ``dtype``, int32 or float32), exponents and invalid flags, as of :class:`golden.bfp.Blocks`.

    Arguments as :func:`golden.bfp.encode` checks them; ``axis`` counts from the end.
    """
    x = np.ascontiguousarray(x)
    noise = None if noise is None else np.ascontiguousarray(noise, np.int32)
    bands, sides, per_block = _stack(x.shape, fmt, axis)
    if not x.size:                                     # blocks of no elements: all zero, E = -126
        low, high = fmt.exponent_range
        return np.zeros(x.shape, dtype), np.full(per_block, min(max(-126, low), high), np.int32), \
            np.zeros(per_block, bool)
    mantissa = scratch.empty(x.shape, dtype)
    exponent = np.empty(per_block, np.int32)
    invalid = np.empty(per_block, bool)
    run = kernels.loaded().hbfp_mantissas if dtype is np.int32 else kernels.loaded().hbfp_float_mantissas
    form = kernels.format_of(fmt)
    where = (x.ctypes.data, mantissa.ctypes.data, exponent.ctypes.data, invalid.ctypes.data,
             0 if noise is None else noise.ctypes.data, *sides)
    kernels.split(bands, x.size * _ELEMENT, lambda low, high: run(*where, low, high, ctypes.addressof(form)))
    return mantissa, exponent, invalid


def decoded(blocks: Blocks) -> np.ndarray:
    """:func:`golden.bfp.decode`; mantissas are int32."""
    mantissa, exponent = np.ascontiguousarray(blocks.mantissa), np.ascontiguousarray(blocks.exponent, np.int32)
    invalid = np.ascontiguousarray(blocks.invalid, bool)
    bands, sides, _ = _stack(mantissa.shape, blocks.fmt, blocks.axis)
    y = scratch.empty(mantissa.shape)
    where = (mantissa.ctypes.data, exponent.ctypes.data, invalid.ctypes.data, y.ctypes.data, *sides)
    kernels.split(bands, y.size * _ELEMENT,
                  lambda low, high: kernels.loaded().hbfp_decode(*where, low, high, blocks.fmt.magnitude))
    return y
