"""Wide mantissas on the streams of a core: digits of X in two beats of a row, those of W in two columns.

Where either is wide, a weight has a pair of columns, and what the even one gives is the product.
"""

import numpy as np

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.golden.core.digits import joined, split


def is_wide(design: Design, fmt: HBFPFormat) -> bool:
    """Whether mantissas of a format run as digits on a design.

    Raises
    ------
    ValueError
        If the design takes no mantissas of that width.
    """
    narrow, mantissa = design.format.mantissa, fmt.mantissa
    if mantissa not in {narrow, design.wide or narrow}:
        widths = f"{narrow} or {design.wide} bits" if design.wide else f"{narrow} bits, since the core is not --wide"
        raise ValueError(f"Mantissas must have {widths}, not {mantissa}")
    return mantissa != narrow


def beats_of_rows(design: Design, mantissa: np.ndarray) -> np.ndarray:
    """Mantissas (M, K) of wide X as digits, (2 M, K): of each row the high ones, then the low ones."""
    digits = split(mantissa, design.format.mantissa, design.wide)
    return np.stack(digits, 1).reshape(-1, mantissa.shape[1])


def columns_of_weights(design: Design, mantissa: np.ndarray, wide: bool) -> np.ndarray:
    """Mantissas (K, N) of W in pairs of columns, (K, 2 N): low digits, then high ones; or narrow mantissas, then 0."""
    if wide:
        high, low = split(mantissa, design.format.mantissa, design.wide)
    else:
        high, low = np.zeros_like(mantissa), mantissa
    return np.stack([low, high], 2).reshape(len(mantissa), -1)


def rows_of_beats(design: Design, digits: np.ndarray) -> np.ndarray:
    """Inverse of :func:`beats_of_rows`, for beats along the last axis but one."""
    return joined(digits[..., 0::2, :], digits[..., 1::2, :], design.format.mantissa)


def weights_of_columns(design: Design, digits: np.ndarray, wide: bool) -> np.ndarray:
    """Inverse of :func:`columns_of_weights`, for columns along the last axis."""
    low = digits[..., 0::2]
    return joined(digits[..., 1::2], low, design.format.mantissa) if wide else low
