"""FP32 to blocks that share an exponent, and back, from the bit fields.

The law is docs/numerics.md, sections 2 and 10. Nothing here uses log2, pow or division. ``encode`` and ``decode`` are
compiled where there is a compiler; ``encode_plain`` and ``decode_plain`` are what they have to equal.
"""

from collections.abc import Callable

import numpy as np

from hbfp.checks import check_kind, check_range
from hbfp.format import HBFPFormat

from .fast import conversion, kernels
from .fast import emulate as compiled
from .number.arrays import as_array
from .number.blocks import (
    CANONICAL_NAN,
    Blocks,
    as_float32,
    block_axis,
    cut,
    inner_axes,
    join,
    per_line,
    public,
    spread,
    used_blocks,
)
from .number.rounding import shift_rne, shift_stochastic, shift_truncate

__all__ = ["CANONICAL_NAN", "Blocks", "as_float32", "block_axis", "cut", "decode", "decode_plain", "emulate",
           "emulate_plain", "encode", "encode_plain", "join", "per_line", "spread", "used_blocks"]

#: Rounding -> shift right by that rule.
_SHIFTS: dict[str, Callable[..., np.ndarray]] = {"rne": shift_rne, "truncate": shift_truncate,
                                                 "stochastic": shift_stochastic}
#: float32(1e-8), which the published research emulator adds to the maximum.
_EMULATOR_EPSILON = np.uint32(0x322BCC77)
#: Thresholds T of the emulator mode: (lowest k, highest k, T); 22 beyond. docs/numerics.md, section 10.
_EMULATOR_THRESHOLDS = ((-64, 63, 11), (-32, 31, 5), (-16, 15, 2), (-8, 7, 1), (-4, 3, 0))


def encode(x: np.ndarray, fmt: HBFPFormat, noise: np.ndarray | None = None, *, axis: int = -1) -> Blocks:
    """FP32 to HBFP: docs/numerics.md, section 2.

    The compiled kernels do it where there are any; :func:`encode_plain` is the definition, to the same bits.

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
    if kernels.library() is None:
        return _encode(x, fmt, noise, axis)
    return Blocks(*conversion.mantissas(x, fmt, noise, axis), fmt, axis)


def encode_plain(x: np.ndarray, fmt: HBFPFormat, noise: np.ndarray | None = None, *, axis: int = -1) -> Blocks:
    """The definition of :func:`encode`, in NumPy integers."""
    x = as_float32(x)
    axis = block_axis(x.ndim, fmt, axis)
    return _encode(x, fmt, _check_noise(x, fmt, noise), axis)


def _encode(x, fmt, noise, axis):
    bits = cut(x, fmt, axis).view(np.uint32).astype(np.int64)
    field, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    inner = inner_axes(fmt)
    top = field.max(inner, keepdims=True, initial=0)
    invalid = top == 255
    exponent = np.clip(top - 126, *fmt.exponent_range)

    gradual = fmt.subnormals == "gradual"
    significand = np.where(field > 0, fraction | 1 << 23, fraction if gradual else 0)
    shift = exponent + 126 - np.maximum(field, 1) + 24 - fmt.magnitude
    shift = np.maximum(shift, 0)                     # below 0 (clamped exponent) saturation decides anyway
    drawn = () if noise is None else (cut(noise, fmt, axis).astype(np.int64), fmt.noise_bits)
    magnitude = _SHIFTS[fmt.rounding](significand, shift, *drawn)
    magnitude = np.where(invalid, 0, np.minimum(magnitude, fmt.limit))
    mantissa = np.where(bits >> 31, -magnitude, magnitude)
    return Blocks(join(mantissa.astype(np.int32), x.shape, fmt, axis),
                  public(exponent.astype(np.int32), fmt, axis), public(invalid, fmt, axis), fmt, axis)


def _check_noise(x, fmt, noise):
    if fmt.rounding != "stochastic":
        if noise is not None:
            raise ValueError(f"Noise needs rounding 'stochastic', not {fmt.rounding!r}")
        return None
    if noise is None:
        raise ValueError("Rounding 'stochastic' needs noise, one integer per element")
    noise = as_array(noise, "Noise")
    if noise.shape != x.shape:
        raise ValueError(f"Noise must have the shape of x, {x.shape}, not {noise.shape}")
    if noise.dtype.kind not in "iu":
        raise TypeError(f"Noise must be integers, not {noise.dtype}")
    if noise.size and not (noise.min() >= 0 and noise.max() < 2 ** fmt.noise_bits):
        raise ValueError(f"Noise must be 0 to {2 ** fmt.noise_bits - 1}, not {noise.min()} to {noise.max()}")
    return noise


def decode(blocks: Blocks) -> np.ndarray:
    """HBFP to FP32: ``M * 2^(E - m)``, exact; NaN throughout an invalid block.

    Parameters
    ----------
    blocks : Blocks
        Such as :func:`encode` gives.

    Returns
    -------
    ndarray of float32
        Shape of the tensor. Exact because FP32 holds every such number of -126 <= E <= 128,
        the smallest as subnormals. :func:`decode_plain` is the definition, to the same bits.
    """
    check_kind("Blocks", blocks, Blocks)
    if kernels.library() is None or blocks.mantissa.dtype != np.int32:
        return decode_plain(blocks)
    return conversion.decoded(blocks)


def decode_plain(blocks: Blocks) -> np.ndarray:
    """The definition of :func:`decode`, in NumPy."""
    check_kind("Blocks", blocks, Blocks)
    fmt, shape = blocks.fmt, blocks.mantissa.shape
    exponent = spread(blocks.exponent, shape, fmt, blocks.axis)
    with np.errstate(all="ignore"):
        x = np.ldexp(blocks.mantissa.astype(np.float64), exponent - fmt.magnitude).astype(np.float32)
    x[spread(blocks.invalid, shape, fmt, blocks.axis)] = CANONICAL_NAN.view(np.float32)
    return x


# --- Emulator mode ------------------------------------------------------------------------------


def emulate(x: np.ndarray, mant_bits: int, tile: int = 0, noise: np.ndarray | None = None) -> np.ndarray:
    """What the published research emulator gives: docs/numerics.md, section 10.

    The compiled kernels do it where there are any; :func:`emulate_plain` is the definition, to the same bits.

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
    return _emulate(x, mant_bits, tile, noise, _plain_tiles if kernels.library() is None else compiled.rounded)


def emulate_plain(x: np.ndarray, mant_bits: int, tile: int = 0, noise: np.ndarray | None = None) -> np.ndarray:
    """The definition of :func:`emulate`, in NumPy."""
    return _emulate(x, mant_bits, tile, noise, _plain_tiles)


def _emulate(x, mant_bits, tile, noise, rounded):
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
    y = rounded(x.reshape(rows, -1), mant_bits, tile, None if noise is None else noise.reshape(rows, -1))
    return y.reshape(x.shape)


def _plain_tiles(flat, mant_bits, tile, noise):
    """A matrix in tiles, or as one."""
    side = (tile, tile) if tile else flat.shape
    padding = [(0, -length % s) for length, s in zip(flat.shape, side, strict=True)]
    grid = tuple((length + pad[1]) // s for length, pad, s in zip(flat.shape, padding, side, strict=True))
    pieces = (grid[0], side[0], grid[1], side[1])

    def tiles(array):
        return np.pad(array, padding).reshape(pieces)

    with np.errstate(all="ignore"):
        y = _emulate_tiles(tiles(flat), mant_bits, None if noise is None else tiles(noise))
    return np.ascontiguousarray(y.reshape(grid[0] * side[0], grid[1] * side[1])[:flat.shape[0], :flat.shape[1]])


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
