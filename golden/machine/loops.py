"""Addresses that nested loops go through."""

from collections.abc import Sequence

import numpy as np


def nest(counts: Sequence[int], strides: Sequence[int], base: int = 0) -> np.ndarray:
    """``base + i0 strides[0] + i1 strides[1] ...``, int64, the innermost loop last: shape ``counts[::-1]``."""
    total = np.asarray(base, np.int64)
    for count, stride in zip(counts, strides, strict=True):
        if count == 1:
            total = total[None]
            continue
        steps = np.arange(count, dtype=np.int64) * stride
        total = steps.reshape(-1, *(1,) * total.ndim) + total
    return total
