"""Loops of loads and stores: as few as there can be, and what they reach is what nested loops reach.

Covers: golden/lower/products/tiles.py.
"""

from itertools import pairwise, product

import numpy as np
import pytest

from golden.lower.builder import Builder, extent, inward, merged, outermost
from golden.lower.errors import LoweringError
from golden.lower.memory import Value
from golden.lower.products.tiles import Tiles
from golden.vector import programs
from hbfp.design import Design
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator

from .test_boxes import SHAPES, reached

MACHINE = Accelerator(core=Design(rows=8), v_words=256)
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


def test_numbers_that_lie_apart_are_stored_one_by_one_or_not_at_all():
    build = Builder(MACHINE)
    where = build.dram.empty((5, 12)).where
    column = Value(where[:, 3:4], build.dram.pieces[0])
    with pytest.raises(LoweringError, match="^it would store numbers that lie apart; along another dimension than .*$"):
        build.store(0, 1, column, (1,), 0)
    build.store(0, 1, column, (0,), 1)
    one, = build.schedule.instructions
    assert (one.opcode, one["run"], one["offset"]) == (Opcode.STORE, 1, 4 * column.address)
    build.store(0, 1, Value(where[2:3, 3:4], column.home), (1,), 0)    # one number lies apart from none
    assert build.schedule.instructions[1]["offset"] == 4 * where[2, 3].storage_offset()


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_a_program_is_read_from_where_it_lies(count):
    build = Builder(MACHINE)
    build.schedule.emitted = []
    build.program([*programs.scale(3), *programs.activation()][:count] * count)
    (region,), (_, load), = build.dram.regions, build.schedule.emitted[0]
    assert [(span.memory, span.start, span.stop) for span in load.reads] == [
        ("DRAM", region.address, region.address + len(region.data))]


@pytest.mark.parametrize("first", [0, 1])
def test_column_tiles_come_in_their_order(first):
    build = Builder(MACHINE)
    tiles = Tiles(build, build.dram.empty((5, 32, 1, 2), [0, 2, 3, 1]), [(0, 0), (0, 1)], 8)
    there = len(build.schedule.instructions)
    tiles.load(build, 9, 4, first, 3, 20)
    own = [each for each in build.schedule.instructions[there:] if each.opcode == Opcode.LOAD]
    assert [(each["offset"] // 4, each["base"]) for each in own] == [
        (tiles.where[first + n, 9].storage_offset(), 20 + n) for n in range(3)]
