"""Pruning: which weights stay, and how they are packed."""

import itertools

import numpy as np
import pytest

from golden.sparsity import compress, expand, keep_mask, prune, prune_fraction, read_index


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


# --- Compressed -----------------------------------------------------------------------------------

SHAPES = [(1, 2), (1, 4), (2, 4), (4, 8)]


def every_group(m, values):
    """All groups of ``m`` of these values, a column each: float32 (m, groups)."""
    return np.array(list(itertools.product(values, repeat=m)), np.float32).T


@pytest.mark.parametrize("n, m", SHAPES)
def test_every_group_with_its_ties_comes_back(n, m):
    """All groups of few magnitudes: pruned, compressed and expanded they are what was pruned."""
    w = every_group(m, (0, 1, -1) if m > 4 else (0, 1, -1, 2, -2))
    pruned = prune(w, n, m)
    values, index = compress(pruned, n, m)
    assert values.shape == index.shape == (n, w.shape[1])
    assert (np.diff(index, axis=0) > 0).all() and index.min() == 0 and index.max() < m
    assert np.array_equal(read_index(index, n, m), index)
    assert np.array_equal(expand(values, index, n, m), pruned)
    assert np.array_equal(np.take_along_axis(pruned, index, 0), values)
    free = (pruned != 0).sum(0) < n    # zeros fill up: the first of the group
    for column in np.flatnonzero(free):
        zeros = [place for place in range(m) if pruned[place, column] == 0]
        kept = {*np.flatnonzero(pruned[:, column]), *zeros[:n - (pruned[:, column] != 0).sum()]}
        assert set(index[:, column]) == kept


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_ragged_groups_are_padded(axis):
    w = np.arange(1, 21, dtype=np.float32).reshape(10, 2)
    w = prune(w if axis == 0 else w.T, 2, 4, axis)
    values, index = compress(w, 2, 4, axis)
    dense = expand(values, index, 2, 4, axis)
    assert values.shape[axis] == 6 and dense.shape[axis] == 12
    whole = np.take(dense, range(10), axis)
    assert np.array_equal(whole, w) and not np.take(dense, range(10, 12), axis).any()


@pytest.mark.parametrize("n, m", SHAPES)
def test_any_index_is_read_as_the_nearest_that_its_place_has(n, m):
    """All indices of a group, ascending or not, repeated or not: one definition, element by element."""
    index = np.array(list(itertools.product(range(m), repeat=n))).T
    values = np.arange(1, n + 1)[:, None].repeat(index.shape[1], 1)
    dense = expand(values, index, n, m)
    for column, given in enumerate(index.T):
        want = np.zeros(m, int)
        for place, number in enumerate(given):
            want[min(max(number, place), place + m - n)] += place + 1
        assert dense[:, column].tolist() == want.tolist(), given


def test_more_than_n_cannot_be_compressed():
    with pytest.raises(ValueError, match=r"^Each group of 4 must hold at most 2 numbers that are not zero, not 3$"):
        compress(np.array([1, 0, 2, 3], np.float32), 2, 4)


@pytest.mark.parametrize("n, m, axis, message", [
    (0, 4, 0, r"^Kept N must be 1 to 4 of a group of 4, not 0$"),
    (5, 4, 0, r"^Kept N must be 1 to 4 of a group of 4, not 5$"),
    (1, 1025, 0, r"^Group M must be 1 to 1024 elements, not 1025$"),
    (2, 4, 1, r"^Axis must be -1 to 0, not 1$")])
def test_wrong_groups(n, m, axis, message):
    with pytest.raises(ValueError, match=message):
        compress(np.zeros(8, np.float32), n, m, axis)
