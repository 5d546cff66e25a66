"""Steps of the vector unit on bit patterns: :mod:`golden.fp32` with subnormals flushed, by NumPy's own arithmetic.

Ten times as quick on the few numbers of a row. IEEE's sum of two FP32 numbers is exact below 2^-126, so that flushing
it is the law; a product is exact in float64.
"""

import numpy as np

from ..number.to_fp32 import FLUSHED_BELOW

SIGN, EXPONENT, NAN = np.uint32(1 << 31), np.uint32(0x7F800000), np.uint32(0x7FC00000)


def _flushed(bits):
    """Patterns whose subnormals are zeros of their sign, as the numbers that they are."""
    return np.where(bits & EXPONENT, bits, bits & SIGN).view(np.float32)


def _patterns(values):
    """Patterns of numbers: subnormals are zeros of their sign, and there is one NaN."""
    return np.where(values == values, _flushed(values.view(np.uint32)).view(np.uint32), NAN)


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b of ``uint32`` patterns."""
    with np.errstate(all="ignore"):
        return _patterns(_flushed(a) + _flushed(b))


def mul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a * b of ``uint32`` patterns."""
    with np.errstate(all="ignore"):
        product = np.multiply(_flushed(a), _flushed(b), dtype=np.float64)
        return _patterns(np.where(np.abs(product) < FLUSHED_BELOW, np.copysign(0.0, product), product).astype(
            np.float32))


def larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The maximum of ``uint32`` patterns: NaN if either is NaN, -0 below +0."""
    with np.errstate(all="ignore"):
        x, y = _flushed(a), _flushed(b)
        found = np.where((x > y) | (x == y) & (b >> 31 == 1), x, y)
        return _patterns(np.where((x == x) & (y == y), found, np.float32(np.nan)))
