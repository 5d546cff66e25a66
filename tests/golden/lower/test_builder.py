"""Loops of loads and stores: as few as there can be, and what they reach is what nested loops reach."""

from itertools import pairwise, product

import numpy as np
import pytest

from golden.lower.builder import extent, inward, merged, outermost

from .test_boxes import SHAPES, reached

#: The most that a count of a load or a store can be.
MOST = 65535
LINES = [*SHAPES, [(2, 15), (3, 5), (5, 1)], [(3, 100_000), (2, 50_000)], [(2, 32_767), (32_767, 1)],
         [(2, 32_768), (32_768, 1)], [(1, 7), (4, 70_000), (1, 3), (7, 10_000)], [(3, 1), (2, 5)]]


@pytest.mark.parametrize("lines", LINES)
def test_no_two_loops_could_be_one(lines):
    found = merged(lines)
    np.testing.assert_array_equal(reached(found), reached(lines))
    assert all(1 < size <= MOST for size, _ in found)
    assert all(outer[1] != inner[0] * inner[1] or outer[0] * inner[0] > MOST for outer, inner in pairwise(found))


def moved(loops, place=0, buffer=0):
    """(DRAM, V) of loops, innermost first."""
    return [(place + sum(n * step for n, (_, step, _) in zip(at, loops[::-1], strict=True)),
             buffer + sum(n * step for n, (*_, step) in zip(at, loops[::-1], strict=True)))
            for at in product(*(range(count) for count, *_ in loops[::-1]))]


@pytest.mark.parametrize("lines", [each for each in LINES if np.prod([size for size, _ in each], initial=1) < 1000])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_instructions_move_all_rows_to_places_that_follow_each_other(lines, most):
    loops = inward(lines, 4)
    every = sorted((found for place, buffer, inner in outermost(loops, most) for found in moved(inner, place, buffer)),
                   key=lambda each: each[1])
    assert all(len(inner) == most for *_, inner in outermost(loops, most))
    assert every == [(int(place), 4 * row) for row, place in enumerate(reached(lines))]
    low, high, first, last = extent(loops, 8, 4)
    assert (low, high) == (min(place for place, _ in every), max(place for place, _ in every) + 8)
    assert (first, last) == (0, 4 * len(every))
