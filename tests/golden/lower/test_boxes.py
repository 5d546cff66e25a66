"""Ranges of rows as boxes reach the same elements in the same order."""

import numpy as np
import pytest

from golden.lower.boxes import boxes, joint, ranges


def reached(loops, skip=0):
    total = np.array([skip])
    for size, stride in loops:
        total = (total[:, None] + stride * np.arange(size)).ravel()
    return total


SHAPES = [[(2, 60), (3, 20), (5, 4)], [(4, 7)], [], [(1, 9), (6, 1)], [(2, 0), (3, 1)]]


@pytest.mark.parametrize("loops", SHAPES)
@pytest.mark.parametrize("most", [1, 2, 4, 7, 100])
def test_boxes_of_ranges_are_all_rows(loops, most):
    other = [(size, 3 * stride + 1) for size, stride in loops]
    every = [[], []]
    for first, count in ranges([size for size, _ in loops], most):
        assert count <= most
        at = 0
        for done, skips, parts in boxes([loops, other], first, count):
            assert done == at
            for each, skip, part in zip(every, skips, parts, strict=True):
                each.extend(reached(part, skip))
            at += int(np.prod([size for size, _ in parts[0]]))
        assert at == count
    np.testing.assert_array_equal(every[0], reached(loops))
    np.testing.assert_array_equal(every[1], reached(other))


@pytest.mark.parametrize(("sizes", "most", "step"), [((6, 5), 8, 4), ((7,), 4, 4), ((2, 3, 5), 16, 8), ((40,), 48, 16)])
def test_ranges_keep_blocks_whole(sizes, most, step):
    parts = list(ranges(sizes, most, step))
    assert sum(count for _, count in parts) == np.prod(sizes)
    assert all(count % step == 0 for _, count in parts[:-1])
    assert all(count <= most for _, count in parts)


def test_ranges_take_whole_inner_loops():
    assert list(ranges((6, 5), 13)) == [(0, 10), (10, 10), (20, 10)]


def test_joint_loops_are_merged_where_all_allow_it():
    assert joint([[(2, 15), (3, 5), (5, 1)], [(2, 30), (3, 10), (5, 2)]]) == [[(30, 1)], [(30, 2)]]
    assert joint([[(2, 15), (3, 5), (5, 1)], [(2, 30), (3, 10), (5, 1)]]) == [[(6, 5), (5, 1)], [(6, 10), (5, 1)]]
    assert joint([[(1, 15)], [(1, 30)]]) == [[], []]
