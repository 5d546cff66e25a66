"""Wide mantissas as two digits of a narrow array: docs/numerics.md, section 3."""

import numpy as np
from numpy.typing import ArrayLike

from hbfp.checks import check_range
from hbfp.format import MANTISSA_RANGE


def check_widths(narrow: int, wide: int) -> None:
    """``ValueError`` unless a mantissa of ``wide`` bits is two digits of ``narrow`` bits."""
    check_range("Mantissa width", narrow, *MANTISSA_RANGE, " bits")
    check_range("Wide mantissa", wide, narrow + 1, 2 * narrow - 1, " bits")


def split(mantissa: ArrayLike, narrow: int, wide: int) -> tuple[np.ndarray, np.ndarray]:
    """The digits of wide mantissas: ``mantissa = high * 2^(narrow - 1) + low``.

    Parameters
    ----------
    mantissa : array of int
        Mantissas of ``wide`` bits, symmetric about zero.
    narrow, wide : int
        Bits of a digit and of a mantissa, sign included.

    Returns
    -------
    (ndarray of int64, ndarray of int64)
        High and low digits, both within the symmetric range of ``narrow`` bits.

    Raises
    ------
    ValueError
        If a width or a mantissa is out of range.
    """
    check_widths(narrow, wide)
    mantissa = np.asarray(mantissa, np.int64)
    limit = 2 ** (wide - 1) - 1
    if mantissa.size and (mantissa.min() < -limit or mantissa.max() > limit):
        raise ValueError(f"Mantissas must be {-limit} to {limit}, not {mantissa.min()} to {mantissa.max()}")
    bits = narrow - 1
    high, low = mantissa >> bits, mantissa & 2 ** bits - 1
    lowest = high == -2 ** bits    # no mantissa of the array: one more, and the low digit makes up for it
    return high + lowest, low - (lowest << bits)


def joined(high: ArrayLike, low: ArrayLike, narrow: int) -> np.ndarray:
    """The mantissas of which :func:`split` gives these digits."""
    return (np.asarray(high, np.int64) << narrow - 1) + np.asarray(low, np.int64)
