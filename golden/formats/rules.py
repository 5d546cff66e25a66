"""What the elements and scales of a :class:`~golden.spec.numbers.Number` are, as arithmetic: docs/formats.md.

Two ways to the same codes: by definition, the nearest entry of a table of all numbers, and by arithmetic in float64,
which is exact here.
"""

from collections.abc import Callable

import numpy as np

from ..spec.numbers import E4M3, Element

#: Powers of two that a block's scale has.
POWERS = (-127, 127)
#: From float64 numbers to the elements nearest to them: :func:`nearest` or :func:`rounded`.
Way = Callable[[np.ndarray, Element], np.ndarray]
_LEAST_NORMAL = np.float32(2.0 ** -126)


def nearest(x: np.ndarray, element: Element) -> np.ndarray:
    """float64 numbers rounded to an element, to nearest, ties to the even code: the definition; signs of 0 are kept.

    NaN gives NaN.
    """
    values = np.array(element.magnitudes)
    if element.infinite:
        values = np.append(values, 2.0 * 2.0 ** element.emax)          # what rounds to this is an infinity
    between = (values[1:] + values[:-1]) / 2                             # exact: few bits each
    magnitude = np.abs(x)
    place = np.searchsorted(between, magnitude, side="left")           # a tie goes down ...
    tied = (place < len(between)) & (between[np.minimum(place, len(between) - 1)] == magnitude)
    found = values[place + (tied & (place & 1 == 1))]                    # ... or up, where down is odd
    if element.infinite:
        found = np.where(found > element.largest, np.inf, found)
    return np.where(np.isnan(x), np.nan, np.copysign(found, x))


def rounded(x: np.ndarray, element: Element) -> np.ndarray:
    """:func:`nearest` by arithmetic."""
    with np.errstate(invalid="ignore"):
        power = np.frexp(x)[1] - 1 if element.exponent else 0
        step = np.maximum(power, element.emin) - element.fraction
        y = np.ldexp(np.rint(np.ldexp(x, -step)), step)
        if element.infinite:
            return np.where(np.abs(y) > element.largest, np.copysign(np.inf, x), y)
        return np.clip(y, -element.largest, element.largest)


def block_power(top: np.ndarray, element: Element) -> np.ndarray:
    """Power of two that scales blocks with largest magnitudes ``top`` (float32): the specification's section 6.3.

    ``floor(log2(top)) - emax``, within :data:`POWERS`; of a block of zeros the least.
    """
    power = np.frexp(top.astype(np.float64))[1] - 1 - element.emax
    return np.clip(np.where(top == 0, POWERS[0], power), *POWERS)


def whole_scale(top: np.ndarray, largest: float) -> np.ndarray:
    """FP32 scale of numbers up to ``top`` (float32): ``top / largest``; 0 where that is no normal number."""
    with np.errstate(all="ignore"):
        scale = top / np.float32(largest)
    return np.where(scale < _LEAST_NORMAL, np.float32(0), scale)


def pair_scales(tops: np.ndarray, whole: np.float32, element: Element, way: Way) -> np.ndarray:
    """E4M3 scales (as float32) of blocks over the FP32 scale ``whole`` of their tensor, rounded in a way."""
    with np.errstate(all="ignore"):
        wanted = tops / np.float32(element.largest) / whole
    return way(np.where(whole == 0, 0, wanted).astype(np.float64), E4M3).astype(np.float32)
