"""Integer and wide results to FP32, rounded once: docs/numerics.md, section 4."""

import numpy as np
from numpy.typing import ArrayLike

from hbfp.checks import check_choice
from hbfp.format import SUBNORMALS

from .arrays import check_broadcast, integers
from .blocks import canonical
from .rounding import bit_length, shift_rne

#: Smallest normal FP32, and the largest value that rounds (24 bits, exponent unbounded) below it.
_NORMAL = np.float64(2.0 ** -126)
FLUSHED_BELOW = np.float64(2.0 ** -126 - 2.0 ** -151)


def to_fp32(total: ArrayLike, exponent: ArrayLike, subnormals: str = "flush") -> np.ndarray:
    """``total * 2^exponent`` as FP32, rounded once to nearest even.

    Parameters
    ----------
    total : array of int64
        Signed integers, magnitude below 2^62.
    exponent : array of int
        Power of two of the last bit of ``total``: ``Es - 2m`` for a block sum.
    subnormals : str
        ``flush``: results below 2^-126, judged after rounding, become +0; ``gradual``: IEEE.

    Returns
    -------
    ndarray of float32
        0 gives +0; 2^128 and above, after rounding, gives +-Inf.
    """
    check_choice("Subnormals", subnormals, SUBNORMALS)
    total, exponent = integers(total, "Total", 62), integers(exponent, "Exponent", 32)
    check_broadcast("Total and exponent", total, exponent)
    total, exponent = np.broadcast_arrays(total, exponent)
    magnitude = np.abs(total)
    length = bit_length(magnitude)
    drop = length - 24                               # the significand keeps 24 bits
    if subnormals == "gradual":
        drop = np.maximum(drop, -149 - exponent)     # but no bit below 2^-149
    significand = np.where(drop >= 0, shift_rne(magnitude, np.maximum(drop, 0)),
                           magnitude << np.clip(-drop, 0, 62))
    carry = significand >> 24                        # rounded up to 2^24
    significand, last = significand >> carry, exponent + drop + carry
    field = np.where(significand >> 23 > 0, last + 150, 0)
    bits = (field << 23) + (significand & 0x7FFFFF)
    bits = np.where(field >= 255, 0x7F800000, bits)
    if subnormals == "flush":
        bits = np.where(field < 1, 0, bits)
    bits = np.where(magnitude == 0, 0, bits)
    bits = bits | np.where((total < 0) & ((bits != 0) | (subnormals == "gradual")), 1 << 31, 0)
    return bits.astype(np.uint32).view(np.float32)


def round_fp32(wide: np.ndarray, subnormals: str = "flush") -> np.ndarray:
    """float64 to FP32 as :func:`to_fp32` rounds; NaN becomes canonical.

    Exact where ``wide`` is exact, or is odd in its last bit wherever it is not.
    """
    with np.errstate(all="ignore"):
        y = np.asarray(wide, np.float64).astype(np.float32)
    if subnormals == "flush":
        y = np.where(np.abs(wide) < FLUSHED_BELOW, np.float32(0), y)
    return canonical(y)


def add_fp32(a: np.ndarray, b: np.ndarray, subnormals: str = "flush") -> np.ndarray:
    """FP32 addition of the accumulator: IEEE RNE, one NaN; ``flush`` gives +0 below 2^-126.

    A sum of FP32 numbers below 2^-126 is exact, so flushing it after the IEEE addition is the law.
    """
    with np.errstate(all="ignore"):
        y = np.add(a, b, dtype=np.float32)
    if subnormals == "flush":
        y = np.where(np.abs(y) < np.float32(_NORMAL), np.float32(0), y)
    return canonical(y)


def add_product_fp32(total: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``total + a * b``, the product exact and the sum rounded once: FP32 total, BF16 operands.

    The product of two BF16 numbers is exact in float64. Their sum with ``total`` need not be, so it
    is first rounded to odd (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums:
    proved algorithms using rounding to odd", IEEE TC 2008), which makes the second rounding safe.
    """
    with np.errstate(all="ignore"):
        wide, product = np.float64(total), np.float64(a) * np.float64(b)
        y = wide + product
        part = y - wide
        error = (wide - (y - part)) + (product - part)
        inexact = np.isfinite(y) & (error != 0) & (y.view(np.int64) & 1 == 0)
        y = np.where(inexact, np.nextafter(y, np.where(error > 0, np.inf, -np.inf)), y)
    return round_fp32(y)


def flush(x: np.ndarray) -> np.ndarray:
    """FP32 with subnormals replaced by +0, as an operand of the baselines is read."""
    return np.where(np.abs(x) < np.float32(_NORMAL), np.float32(0), x)


def to_fp16(x: np.ndarray) -> np.ndarray:
    """FP32 rounded to FP16 (RNE; below 2^-14, judged after rounding, +0), as the FP32 number that it is.

    From 65520 on it is Inf, which is what rounds up to 2^16.
    """
    bits = np.ascontiguousarray(x).view(np.uint32).astype(np.int64)
    rounded = (shift_rne(bits & 0x7FFFFFFF, 13) << 13 | bits & 1 << 31).astype(np.uint32).view(np.float32)
    y = np.where(np.abs(rounded) < np.float32(2.0 ** -14), np.float32(0), rounded)
    y = np.where(np.abs(y) >= np.float32(2.0 ** 16), np.copysign(np.float32(np.inf), y), y)
    return canonical(np.where(np.isnan(x), x, y))


def to_int8(x: np.ndarray) -> np.ndarray:
    """FP32 rounded to an integer from -127 to 127 (RNE, what is beyond saturates, NaN is 0), as FP32; zero is +0."""
    return np.clip(np.rint(np.where(np.isnan(x), np.float32(0), x)), -127, 127).astype(np.float32) + np.float32(0)


def to_bf16(x: np.ndarray) -> np.ndarray:
    """FP32 rounded to BF16 (RNE, subnormals to +0), as the FP32 number that it is."""
    bits = flush(x).view(np.uint32).astype(np.int64)
    rounded = shift_rne(bits & 0x7FFFFFFF, 16) << 16
    y = (rounded | bits & 1 << 31).astype(np.uint32).view(np.float32)
    return canonical(np.where(np.isnan(x), x, y))
