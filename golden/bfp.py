"""FP32 to blocks that share an exponent, and back, from the bit fields.

The law is docs/numerics.md, sections 2 and 10. Nothing here uses log2, pow or division.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hbfp.fields import check_range
from hbfp.format import HBFPFormat

from .rounding import shift_rne, shift_stochastic, shift_truncate

#: The one NaN that ever leaves the hardware.
CANONICAL_NAN = np.uint32(0x7FC00000)
#: float32(1e-8), which the published research emulator adds to the maximum.
_EMULATOR_EPSILON = np.uint32(0x322BCC77)
#: Thresholds T of the emulator mode: (lowest k, highest k, T); 22 beyond. docs/numerics.md, section 10.
_EMULATOR_THRESHOLDS = ((-64, 63, 11), (-32, 31, 5), (-16, 15, 2), (-8, 7, 1), (-4, 3, 0))


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
    x = np.asarray(x)
    if x.dtype != np.float32:
        raise TypeError(f"{what} must be float32, not {x.dtype}")
    return x


def canonical(x: np.ndarray) -> np.ndarray:
    """``x`` (float32) with every NaN replaced by the canonical one."""
    return np.where(np.isnan(x), CANONICAL_NAN.view(np.float32), x)


# --- Cutting a tensor into blocks ---------------------------------------------------------------


def block_axis(ndim: int, fmt: HBFPFormat, axis: int) -> int:
    """``axis`` counted from the end, checked against the number of dimensions."""
    least = 2 if fmt.square else 1
    if ndim < least:
        raise ValueError(f"Blocks {fmt.block} need {least} or more dimensions, not {ndim}")
    if fmt.square:
        return -1
    if not -ndim <= axis < ndim:
        raise ValueError(f"Axis must be {-ndim} to {ndim - 1}, not {axis!r}")
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


def _inner(fmt):
    """Axes of :func:`cut`'s result that run inside a block."""
    return (-3, -1) if fmt.square else (-1,)


def _outer(per_block, fmt, axis):
    """Shape that :func:`cut` gives a per-block array, from its public shape."""
    if fmt.square:
        return per_block[..., :, None, :, None]
    return np.moveaxis(per_block, axis, -1)[..., None]


def _public(per_block, fmt, axis):
    """Inverse of :func:`_outer`."""
    if fmt.square:
        return np.ascontiguousarray(per_block[..., :, 0, :, 0])
    return np.ascontiguousarray(np.moveaxis(per_block[..., 0], -1, axis))


def spread(per_block: np.ndarray, shape: tuple[int, ...], fmt: HBFPFormat, axis: int = -1) -> np.ndarray:
    """A per-block array repeated over the elements of its blocks: an array of ``shape``."""
    axis = block_axis(len(shape), fmt, axis)
    outer = _outer(per_block, fmt, axis)
    inner = list(outer.shape)
    for position in _inner(fmt):
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
    used = (cut(blocks.mantissa, blocks.fmt, blocks.axis) != 0).any(_inner(blocks.fmt), keepdims=True)
    return _public(used, blocks.fmt, blocks.axis)


# --- The conversion -----------------------------------------------------------------------------


def encode(x: np.ndarray, fmt: HBFPFormat, noise: np.ndarray | None = None, *, axis: int = -1) -> Blocks:
    """FP32 to HBFP: docs/numerics.md, section 2.

    Parameters
    ----------
    x : ndarray of float32
        Any shape of one or more dimensions; ragged edges count as padded with zeros.
    fmt : HBFPFormat
        Format. Blocks ``(1, B)`` run along ``axis``, ``(t, t)`` over the last two axes.
    noise : ndarray of int, optional
        ``stochastic`` only, and needed there: shape of ``x``, ``0 .. 2^noise_bits - 1``
        (:func:`golden.noise.noise` gives the hardware's).
    axis : int
        The axis that blocks ``(1, B)`` run along.

    Returns
    -------
    Blocks

    Raises
    ------
    TypeError
        If ``x`` is not float32.
    ValueError
        If the axis does not exist or the noise is missing, superfluous or of another shape.
    """
    x = as_float32(x)
    axis = block_axis(x.ndim, fmt, axis)
    noise = _check_noise(x, fmt, noise)
    bits = cut(x, fmt, axis).view(np.uint32).astype(np.int64)
    field, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    inner = _inner(fmt)
    top = field.max(inner, keepdims=True, initial=0)
    invalid = top == 255
    exponent = np.clip(top - 126, *fmt.exponent_range)

    gradual = fmt.subnormals == "gradual"
    significand = np.where(field > 0, fraction | 1 << 23, fraction if gradual else 0)
    shift = exponent + 126 - np.maximum(field, 1) + 24 - fmt.magnitude
    shift = np.maximum(shift, 0)                     # below 0 (clamped exponent) saturation decides anyway
    match fmt.rounding:
        case "rne":
            magnitude = shift_rne(significand, shift)
        case "truncate":
            magnitude = shift_truncate(significand, shift)
        case "stochastic":
            magnitude = shift_stochastic(significand, shift, cut(noise, fmt, axis), fmt.noise_bits)
    magnitude = np.where(invalid, 0, np.minimum(magnitude, fmt.limit))
    mantissa = np.where(bits >> 31, -magnitude, magnitude)
    return Blocks(join(mantissa.astype(np.int32), x.shape, fmt, axis),
                  _public(exponent.astype(np.int32), fmt, axis), _public(invalid, fmt, axis), fmt, axis)


def _check_noise(x, fmt, noise):
    if fmt.rounding != "stochastic":
        if noise is not None:
            raise ValueError(f"Noise needs rounding 'stochastic', not {fmt.rounding!r}")
        return None
    if noise is None:
        raise ValueError("Rounding 'stochastic' needs noise, one integer per element")
    noise = np.asarray(noise)
    if noise.shape != x.shape:
        raise ValueError(f"Noise must have the shape of x, {x.shape}, not {noise.shape}")
    if noise.dtype.kind not in "iu":
        raise TypeError(f"Noise must be integers, not {noise.dtype}")
    if noise.size and not (noise.min() >= 0 and noise.max() < 2 ** fmt.noise_bits):
        raise ValueError(f"Noise must be 0 to {2 ** fmt.noise_bits - 1}, not {noise.min()} to {noise.max()}")
    return noise.astype(np.int64)


def decode(blocks: Blocks) -> np.ndarray:
    """HBFP to FP32: ``M * 2^(E - m)``, exact; NaN throughout an invalid block.

    Returns
    -------
    ndarray of float32
        Shape of the tensor. Exact because FP32 holds every such number of -126 <= E <= 128,
        the smallest as subnormals.
    """
    fmt, shape = blocks.fmt, blocks.mantissa.shape
    exponent = spread(blocks.exponent, shape, fmt, blocks.axis)
    wide = np.ldexp(blocks.mantissa.astype(np.float64), exponent - fmt.magnitude)
    with np.errstate(all="ignore"):
        x = wide.astype(np.float32)
    x[spread(blocks.invalid, shape, fmt, blocks.axis)] = CANONICAL_NAN.view(np.float32)
    return x


# --- Emulator mode ------------------------------------------------------------------------------


def emulate(x: np.ndarray, mant_bits: int, tile: int = 0, noise: np.ndarray | None = None) -> np.ndarray:
    """What the published research emulator gives: docs/numerics.md, section 10.

    Parameters
    ----------
    x : ndarray of float32
        Any shape.
    mant_bits : int
        Magnitude bits m, sign not counted, 1 to 23.
    tile : int
        Side of the square tiles of ``x.reshape(x.shape[0], -1)``; 0 is one block for the tensor.
    noise : ndarray of float32, optional
        In [-0.5, 0.5), shape of ``x``: stochastic rounding.

    Returns
    -------
    ndarray of float32
        Shape of ``x``.

    Raises
    ------
    TypeError
        If ``x`` or the noise is not float32.
    ValueError
        If a width, a side or the noise's shape is wrong.
    """
    x = as_float32(x)
    check_range("Mantissa width without sign", mant_bits, 1, 23, " bits")
    check_range("Tile side", tile, 0, 1 << 20, " elements")
    if noise is not None:
        noise = as_float32(noise, "noise")
        if noise.shape != x.shape:
            raise ValueError(f"Noise must have the shape of x, {x.shape}, not {noise.shape}")
    if x.size == 0:
        return x.copy()
    rows = x.shape[0] if x.ndim and tile else 1
    flat = x.reshape(rows, -1)
    side = (tile, tile) if tile else flat.shape
    padding = [(0, -length % s) for length, s in zip(flat.shape, side, strict=True)]
    grid = tuple((length + pad[1]) // s for length, pad, s in zip(flat.shape, padding, side, strict=True))
    pieces = (grid[0], side[0], grid[1], side[1])

    def tiles(array):
        return np.pad(array.reshape(flat.shape), padding).reshape(pieces)

    with np.errstate(all="ignore"):
        y = _emulate_tiles(tiles(x), mant_bits, None if noise is None else tiles(noise))
    y = y.reshape(grid[0] * side[0], grid[1] * side[1])[:flat.shape[0], :flat.shape[1]]
    return np.ascontiguousarray(y).reshape(x.shape)


def _emulate_tiles(x, mant_bits, noise):
    """Blocks over axes 1 and 3 of ``x``; every step is one IEEE float32 operation."""
    largest = np.abs(x).max((1, 3), keepdims=True)
    shifted = (largest + _EMULATOR_EPSILON.view(np.float32)).astype(np.float32)
    bits = shifted.view(np.uint32).astype(np.int64)
    k, fraction = (bits >> 23 & 0xFF) - 127, bits & 0x7FFFFF
    threshold = np.full_like(k, 22)
    for low, high, value in _EMULATOR_THRESHOLDS:
        threshold[(k >= low) & (k <= high)] = value
    exponent = k + (fraction > threshold)
    one = np.float32(1)
    scaled = np.ldexp(x, mant_bits - exponent)
    rounded = np.rint(scaled if noise is None else noise + scaled)
    y = np.ldexp(rounded, exponent - mant_bits)
    limit = np.ldexp(one, exponent) - np.ldexp(one, exponent - mant_bits)    # Inf for E = 128
    y = np.clip(y, -limit, limit)
    y[np.broadcast_to(~np.isfinite(largest), y.shape)] = CANONICAL_NAN.view(np.float32)
    return y
