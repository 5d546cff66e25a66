"""Pruning: which weights stay."""

import numpy as np
import pytest

from golden.sparsity import keep_mask, prune, prune_fraction


def naive(column, n, m):
    """One column of weights, group by group, by sorting (-magnitude, index)."""
    kept = np.zeros_like(column)
    for top in range(0, len(column), m):
        group = range(top, min(top + m, len(column)))
        for i in sorted(group, key=lambda i: (-abs(column[i]), i))[:n]:
            kept[i] = column[i]
    return kept


@pytest.mark.parametrize("n, m", [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4), (4, 8), (1, 2)])
@pytest.mark.parametrize("axis", [0, 1])
def test_keeps_the_largest(n, m, axis):
    w = np.random.default_rng(n).integers(-4, 5, (30, 7)).astype(np.float32)     # ties abound
    columns = w if axis == 0 else w.T
    want = np.stack([naive(c, n, m) for c in columns.T], 1)
    assert np.array_equal(prune(w, n, m, axis), want if axis == 0 else want.T)


def test_tie_keeps_the_lowest_index():
    assert prune(np.array([1, -1, 1, 1], np.float32), 2, 4).tolist() == [1, -1, 0, 0]


def test_ragged_group_keeps_its_own():
    w = np.array([3, 2, 1, 0, 1e-3, 0], np.float32)
    assert keep_mask(w, 2, 4).tolist() == [True, True, False, False, True, True]


def test_pruned_is_plus_zero():
    assert not np.signbit(prune(np.array([-1, -2], np.float32), 1, 2)).all()


@pytest.mark.parametrize("fraction, want", [(0, [3, -1, 2, 1]), (0.5, [3, 0, 2, 0]), (0.25, [3, -1, 2, 0]),
                                            (1, [0, 0, 0, 0])])
def test_unstructured(fraction, want):
    assert prune_fraction(np.array([3, -1, 2, 1], np.float32), fraction).tolist() == want


@pytest.mark.parametrize("n, m, axis, message", [
    (5, 4, 0, r"^Kept N must be 0 to 4 of a group of 4, not 5$"),
    (0, 0, 0, r"^Group M must be 1 to 1024 elements, not 0$"),
    (2, 4, 1, r"^Axis must be -1 to 0, not 1$")])
def test_wrong_options(n, m, axis, message):
    with pytest.raises(ValueError, match=message):
        prune(np.ones(8, np.float32), n, m, axis)


def test_wrong_fraction():
    with pytest.raises(ValueError, match=r"^Fraction must be 0 to 1, not 1.5$"):
        prune_fraction(np.ones(8, np.float32), 1.5)


def test_wrong_dtype():
    with pytest.raises(TypeError, match=r"^w must be float32, not int64$"):
        prune(np.ones(8, int), 2, 4)
