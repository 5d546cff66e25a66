"""Structured and unstructured pruning: which weights stay."""

import numpy as np

from hbfp.fields import check_range

from .blocks import as_float32

#: Weights of a group.
GROUP_RANGE = (1, 1024)


def _magnitude(w):
    """An integer that orders float32 by magnitude: the bit pattern without the sign."""
    return (w.view(np.uint32) & np.uint32(0x7FFFFFFF)).astype(np.int64)


def keep_mask(w: np.ndarray, n: int, m: int, axis: int = 0) -> np.ndarray:
    """Which elements of ``w`` N:M pruning keeps: bool, shape of ``w``; see :func:`prune`."""
    w = as_float32(w, "w")
    check_range("Group M", m, *GROUP_RANGE, " elements")
    check_range("Kept N", n, 0, m, f" of a group of {m}")
    if not -w.ndim <= axis < w.ndim:
        raise ValueError(f"Axis must be {-w.ndim} to {w.ndim - 1}, not {axis!r}")
    moved = np.moveaxis(_magnitude(w), axis, -1)
    length = moved.shape[-1]
    # Padding ranks below zero, so that a ragged last group keeps its own elements first.
    moved = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, -length % m)], constant_values=-1)
    groups = moved.reshape(*moved.shape[:-1], moved.shape[-1] // m, m)
    order = np.argsort(-groups, -1, kind="stable")          # stable: the lowest index wins a tie
    kept = np.zeros(groups.shape, bool)
    np.put_along_axis(kept, order[..., :n], True, -1)
    return np.moveaxis(kept.reshape(moved.shape)[..., :length], -1, axis)


def prune(w: np.ndarray, n: int, m: int, axis: int = 0) -> np.ndarray:
    """Keep the ``n`` largest magnitudes of each group of ``m`` along ``axis``; the rest become +0.

    Parameters
    ----------
    w : ndarray of float32
        Weights (K, N); any shape.
    n, m : int
        Kept, and group size: 2, 4 for 2:4. A tie keeps the lowest index. A ragged last group
        keeps its ``n`` largest too.
    axis : int
        The reduction dimension K.

    Returns
    -------
    ndarray of float32

    Raises
    ------
    TypeError
        If ``w`` is not float32.
    ValueError
        If ``n``, ``m`` or the axis is out of range.
    """
    w = as_float32(w, "w")
    return np.where(keep_mask(w, n, m, axis), w, np.float32(0))


def prune_fraction(w: np.ndarray, fraction: float) -> np.ndarray:
    """Unstructured: set the ``round(fraction * size)`` smallest magnitudes of ``w`` to +0.

    On a tie the highest index goes first.

    Raises
    ------
    ValueError
        If the fraction is not within 0 to 1.
    """
    w = as_float32(w, "w")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Fraction must be 0 to 1, not {fraction!r}")
    kept = w.size - round(fraction * w.size)
    order = np.argsort(-_magnitude(w).ravel(), kind="stable")
    y = np.zeros(w.size, np.float32)
    y[order[:kept]] = w.ravel()[order[:kept]]
    return y.reshape(w.shape)
