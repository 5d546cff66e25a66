"""Structured and unstructured pruning: which weights stay, and how those of N:M groups are packed."""

from numbers import Real

import numpy as np

from hbfp.checks import check_range
from hbfp.values import given

from .number.arrays import as_array, check_axis, integers
from .number.blocks import as_float32

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
    check_axis(axis, w.ndim)
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
    if isinstance(fraction, bool) or not isinstance(fraction, Real) or not 0 <= fraction <= 1:
        raise ValueError(f"Fraction must be 0 to 1, not {given(fraction)}")
    kept = w.size - round(fraction * w.size)
    order = np.argsort(-_magnitude(w).ravel(), kind="stable")
    y = np.zeros(w.size, np.float32)
    y[order[:kept]] = w.ravel()[order[:kept]]
    return y.reshape(w.shape)


# --- Compressed along the reduction dimension ---------------------------------------------------


def _check_groups(n, m):
    check_range("Group M", m, *GROUP_RANGE, " elements")
    check_range("Kept N", n, 1, m, f" of a group of {m}")


def compress(w: np.ndarray, n: int, m: int, axis: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """``n`` terms of each group of ``m`` along ``axis``, ascending, and where they stood; docs/numerics.md, section 8.

    The terms of a group that are not zero are taken, and its first zeros where they are fewer than ``n``.

    Parameters
    ----------
    w : ndarray
        Numbers of any type with at most ``n`` in each group that are not zero, such as what :func:`prune` leaves,
        or the mantissas of it. A ragged last group is padded with zeros.
    n, m : int
        Kept, and group size.
    axis : int
        The reduction dimension K.

    Returns
    -------
    (ndarray, ndarray of int64)
        Values and indices within their groups, of equal shape: ``w`` with the axis cut to ``ceil(K / m) * n``.

    Raises
    ------
    ValueError
        If ``n``, ``m`` or the axis is out of range, or a group holds more than ``n``.
    """
    _check_groups(n, m)
    w = as_array(w, "w")
    check_axis(axis, w.ndim)
    moved = np.moveaxis(w, axis, -1)
    moved = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, -moved.shape[-1] % m)])
    groups = moved.reshape(*moved.shape[:-1], moved.shape[-1] // m, m)
    most = (groups != 0).sum(-1).max(initial=0)
    if most > n:
        raise ValueError(f"Each group of {m} must hold at most {n} numbers that are not zero, not {most}")
    index = np.sort(np.argsort(groups == 0, -1, kind="stable")[..., :n], -1)
    values = np.take_along_axis(groups, index, -1)
    shape = *moved.shape[:-1], groups.shape[-2] * n
    return np.moveaxis(values.reshape(shape), -1, axis), np.moveaxis(index.reshape(shape), -1, axis)


def read_index(index: np.ndarray, n: int, m: int, axis: int = 0) -> np.ndarray:
    """The term of its group that each weight meets, whatever its index says: int64, shape of ``index``.

    Place e of a group meets terms e to e + m - n: an index outside of these is read as the nearest of them.
    """
    _check_groups(n, m)
    index = integers(index, "Index")
    check_axis(axis, index.ndim)
    place = np.arange(index.shape[axis]) % n
    place = place.reshape([-1 if each == axis % index.ndim else 1 for each in range(index.ndim)])
    return place + np.clip(index - place, 0, m - n)


def expand(values: np.ndarray, index: np.ndarray, n: int, m: int, axis: int = 0) -> np.ndarray:
    """The dense numbers that a core multiplies by, given :func:`compress`'s result or any other index.

    Indices are read by :func:`read_index`; weights that meet the same term add up, all others are zero.

    Returns
    -------
    ndarray
        ``values`` with the axis ``m / n`` times as long.
    """
    values, index = as_array(values, "Values"), integers(index, "Index")
    if values.shape != index.shape:
        raise ValueError(f"Values and index must have equal shapes, not {values.shape} and {index.shape}")
    place = read_index(index, n, m, axis)
    values, place = np.moveaxis(values, axis, -1), np.moveaxis(place, axis, -1)
    groups = values.shape[-1] // n
    place = place + np.arange(groups).repeat(n) * m
    dense = np.zeros((*values.shape[:-1], groups * m), values.dtype)
    lead = np.indices(values.shape, sparse=True)[:-1]
    np.add.at(dense, (*lead, place), values)
    return np.moveaxis(dense, -1, axis)
