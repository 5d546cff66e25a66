"""Sums in floats narrower than FP32: docs/numerics.md, section 5, ``fp24`` and ``bf16``."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from hbfp.design import FLOAT_SUMS
from hbfp.golden.spec.floats import FP32, FloatFormat

from . import fp32
from .number.arrays import patterns
from .number.blocks import canonical

#: Accumulation -> format of its sums, where it is narrower than FP32.
NARROW = {name: FloatFormat(FP32.exponent, fraction) for name, fraction in FLOAT_SUMS.items()
          if fraction != FP32.fraction}
#: Smallest normal number of every format with FP32's exponent.
_NORMAL = 2.0 ** (1 - FP32.bias)


def widened(x: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """Patterns of a format with FP32's exponent as the float32 numbers that they are."""
    return (patterns(x, width=fmt.width).astype(np.uint32) << np.uint32(FP32.fraction - fmt.fraction)).view(np.float32)


def accumulate_plain(terms: Iterable[tuple[np.ndarray, np.ndarray]], fmt: FloatFormat,
                     subnormals: str = "flush") -> np.ndarray:
    """The definition, on bit patterns: each pair is exact sums and the powers of two of their last bits; float32."""
    acc: ArrayLike = np.uint32(0)
    for total, last in terms:
        term = fp32.from_int(total, last, fmt=fmt, subnormals=subnormals, underflow="positive")
        acc = fp32.add(acc, term, fmt, subnormals, "positive" if subnormals == "flush" else "signed")
    return widened(np.asarray(acc), fmt)


def rounded(wide: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """float64 rounded once to a format with FP32's exponent, to nearest even, as float64; below 2^-126 it is +0."""
    cut = 52 - fmt.fraction
    with np.errstate(all="ignore"):
        bits = np.asarray(wide, np.float64).view(np.int64)
        bits = bits + (1 << (cut - 1)) - 1 + (bits >> cut & 1) & -(1 << cut)
        y = np.where(np.isfinite(wide), bits.view(np.float64), wide)
        y = np.where(np.abs(y) < _NORMAL, 0.0, y)
        return np.where(np.abs(y) >= 2.0 ** (FP32.bias + 1), np.copysign(np.inf, y), y)


def accumulate(terms: Iterable[tuple[np.ndarray, np.ndarray]], fmt: FloatFormat) -> np.ndarray:
    """:func:`accumulate_plain` with flushed subnormals, in float64, where the integers are below 2^53.

    A sum of two numbers of at most 25 bits that float64 rounds first is rounded no other way afterwards.
    """
    acc: ArrayLike = np.float64(0)
    with np.errstate(all="ignore"):
        for total, last in terms:
            acc = rounded(acc + rounded(np.ldexp(total.astype(np.float64), np.clip(last, -1000, 1000)), fmt), fmt)
        return canonical(np.asarray(acc, np.float32))
