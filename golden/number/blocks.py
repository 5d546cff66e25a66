"""Tensors in blocks that share an exponent: what they hold, and how a tensor is cut into them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hbfp.checks import check_kind, check_range
from hbfp.format import HBFPFormat

from .arrays import as_array, check_axis

#: The one NaN that ever leaves the hardware.
CANONICAL_NAN = np.uint32(0x7FC00000)


@dataclass(frozen=True, eq=False)
class Blocks:
    """A tensor in HBFP.

    Attributes
    ----------
    mantissa : ndarray of int32
        Shape of the tensor; ``-limit .. limit``.
    exponent : ndarray of int32
        One per block. Blocks ``(1, B)``: the tensor's shape with the blocked axis cut to
        ``ceil(length / B)``. Blocks ``(t, t)``: the last two axes cut. An invalid block holds what its
        exponent field 255 gives, 129 (or the clamp).
    invalid : ndarray of bool
        One per block: the block held an Inf or a NaN.
    fmt : HBFPFormat
        The format.
    axis : int
        The blocked axis, counted from the end (-1 is the last); -1 for square tiles.
    """
    mantissa: np.ndarray
    exponent: np.ndarray
    invalid: np.ndarray
    fmt: HBFPFormat
    axis: int = -1


def as_float32(x: ArrayLike, what: str = "x") -> np.ndarray:
    """``x`` as a float32 array; any other dtype is refused, not converted."""
    x = as_array(x, what)
    if x.dtype != np.float32:
        raise TypeError(f"{what} must be float32, not {x.dtype}")
    return x


def canonical(x: np.ndarray) -> np.ndarray:
    """``x`` (float32) with every NaN replaced by the canonical one."""
    return np.where(np.isnan(x), CANONICAL_NAN.view(np.float32), x)


# --- Cutting a tensor into blocks ---------------------------------------------------------------


def block_axis(ndim: int, fmt: HBFPFormat, axis: int) -> int:
    """``axis`` counted from the end, checked against the number of dimensions."""
    check_kind("Format", fmt, HBFPFormat)
    check_range("Dimensions", ndim, 0, 64)
    least = 2 if fmt.square else 1
    if ndim < least:
        raise ValueError(f"Blocks {fmt.block} need {least} or more dimensions, not {ndim}")
    if fmt.square:
        return -1
    check_axis(axis, ndim)
    return axis - ndim if axis >= 0 else axis


def block_sides(fmt: HBFPFormat, axis: int) -> tuple[int, int]:
    """Rows and columns of a block of a matrix; ``axis`` is 0 or 1, or counted from the end."""
    if fmt.square:
        return fmt.block
    return (1, fmt.terms) if axis in (-1, 1) else (fmt.terms, 1)


def cut(x: np.ndarray, fmt: HBFPFormat, axis: int = -1) -> np.ndarray:
    """``x`` padded with zeros and cut: ``(..., blocks, B)`` or ``(..., rows, t, columns, t)``."""
    axis = block_axis(x.ndim, fmt, axis)
    side = fmt.terms
    if not fmt.square:
        x = np.moveaxis(x, axis, -1)
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % side)])
        return x.reshape(*x.shape[:-1], x.shape[-1] // side, side)
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, -x.shape[-2] % side), (0, -x.shape[-1] % side)])
    return x.reshape(*x.shape[:-2], x.shape[-2] // side, side, x.shape[-1] // side, side)


def join(pieces: np.ndarray, shape: tuple[int, ...], fmt: HBFPFormat, axis: int = -1) -> np.ndarray:
    """Inverse of :func:`cut`: the tensor of ``shape`` without its padding."""
    axis = block_axis(len(shape), fmt, axis)
    if not fmt.square:
        flat = pieces.reshape(*pieces.shape[:-2], -1) if pieces.size else np.zeros(
            (*pieces.shape[:-2], pieces.shape[-2] * pieces.shape[-1]), pieces.dtype)
        flat = np.moveaxis(flat, -1, axis)
    else:
        *lead, rows, side, columns, _ = pieces.shape
        flat = pieces.reshape(*lead, rows * side, columns * side)
    return np.ascontiguousarray(flat[tuple(slice(0, length) for length in shape)])


def inner_axes(fmt: HBFPFormat) -> tuple[int, ...]:
    """Axes of :func:`cut`'s result that run inside a block."""
    return (-3, -1) if fmt.square else (-1,)


def _outer(per_block, fmt, axis):
    """Shape that :func:`cut` gives a per-block array, from its public shape."""
    if fmt.square:
        return per_block[..., :, None, :, None]
    return np.moveaxis(per_block, axis, -1)[..., None]


def public(per_block: np.ndarray, fmt: HBFPFormat, axis: int) -> np.ndarray:
    """A per-block array with axes as of :func:`cut` in its public shape; see :class:`Blocks`."""
    if fmt.square:
        return np.ascontiguousarray(per_block[..., :, 0, :, 0])
    return np.ascontiguousarray(np.moveaxis(per_block[..., 0], -1, axis))


def spread(per_block: np.ndarray, shape: tuple[int, ...], fmt: HBFPFormat, axis: int = -1) -> np.ndarray:
    """A per-block array repeated over the elements of its blocks: an array of ``shape``."""
    axis = block_axis(len(shape), fmt, axis)
    outer = _outer(per_block, fmt, axis)
    inner = list(outer.shape)
    for position in inner_axes(fmt):
        inner[position] = fmt.terms
    return join(np.broadcast_to(outer, inner), shape, fmt, axis)


def per_line(blocks: Blocks, per_block: np.ndarray, line: int) -> np.ndarray:
    """A per-block array of a matrix, with one entry for each line along K and each block of the line.

    Parameters
    ----------
    blocks : Blocks
        The matrix.
    per_block : ndarray
        Its exponents, or invalid flags.
    line : int
        0: lines are rows, as of x; 1: columns, as of w. One exponent of a tile serves every line that it covers.
    """
    if not blocks.fmt.square:
        return per_block
    return per_block.repeat(blocks.fmt.terms, line).take(np.arange(blocks.mantissa.shape[line]), line)


def used_blocks(blocks: Blocks) -> np.ndarray:
    """Which blocks hold a mantissa other than 0: bool, shape of ``blocks.exponent``."""
    used = (cut(blocks.mantissa, blocks.fmt, blocks.axis) != 0).any(inner_axes(blocks.fmt), keepdims=True)
    return public(used, blocks.fmt, blocks.axis)
