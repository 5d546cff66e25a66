"""Waits follow from what instructions read and write."""

import re

import numpy as np
import pytest

from golden.lower.errors import LoweringError
from golden.lower.schedule import Ring, Schedule, Span
from hbfp.design import Design
from hbfp.isa.instructions import Opcode, Unit, Wait
from hbfp.system import Accelerator

MACHINE = Accelerator(core=Design(rows=8))
COUNTS = {"count0": 1, "count1": 1, "count2": 1}


def emitted(*steps):
    """The instructions of (opcode, reads, writes), where spans are (memory, start, stop)."""
    schedule = Schedule(MACHINE)
    for opcode, reads, writes in steps:
        schedule.emit(opcode, {}, [Span(*span) for span in reads], [Span(*span) for span in writes])
    return schedule.instructions


def waits(*steps):
    return [set(each.waits) for each in emitted(*steps)]


V = ("V", 0, 8)


def test_a_reader_waits_for_the_writer_and_a_writer_for_readers():
    assert waits((Opcode.LOAD, [], [V]), (Opcode.VECTOR, [V], [("V", 8, 16)]), (Opcode.STORE, [("V", 12, 13)], []),
                 (Opcode.LOAD, [], [V]), (Opcode.LOAD, [], [("V", 8, 9)])) == [
        set(), {Wait(Unit.LOAD, 1)}, {Wait(Unit.VECTOR, 1)}, {Wait(Unit.VECTOR, 1)}, set()]


def test_a_piece_next_to_it_is_no_reason():
    assert waits((Opcode.LOAD, [], [V]), (Opcode.VECTOR, [("V", 8, 9)], [("V", 9, 10)]))[1] == set()
    assert waits((Opcode.LOAD, [], [V]), (Opcode.VECTOR, [("V", 7, 9)], [("V", 9, 10)]))[1] == {Wait(Unit.LOAD, 1)}
    assert waits((Opcode.LOAD, [], [V]), (Opcode.VECTOR, [("X", 0, 8)], []))[1] == set()


def test_two_readers_are_waited_for():
    assert waits((Opcode.LOAD, [], [V]), (Opcode.VECTOR, [V], []), (Opcode.STORE, [V], []),
                 (Opcode.DRAIN, [], [V]))[3] == {Wait(Unit.VECTOR, 1), Wait(Unit.STORE, 1)}


def test_what_another_wait_implies_is_left_out():
    assert waits((Opcode.LOAD, [], [V]), (Opcode.VECTOR, [V], [("V", 8, 9)]), (Opcode.STORE, [V, ("V", 8, 9)], []))[
        2] == {Wait(Unit.VECTOR, 1)}


def test_what_is_known_is_not_waited_for_again():
    assert waits((Opcode.LOAD, [], [V]), (Opcode.STORE, [V], []), (Opcode.STORE, [V], []))[2] == set()


def test_three_waits_take_none():
    steps = [(opcode, [], [("V", number, number + 1)]) for number, opcode in
             enumerate((Opcode.LOAD, Opcode.CONVERT, Opcode.DRAIN))]
    assert [each.opcode for each in emitted(*steps, (Opcode.VECTOR, [V], []))[3:]] == [Opcode.VECTOR]


def test_more_than_three_waits_take_nops():
    steps = [(opcode, [], [("V", number, number + 1)]) for number, opcode in
             enumerate((Opcode.LOAD, Opcode.CONVERT, Opcode.DRAIN, Opcode.STORE, Opcode.WEIGHTS))]
    found = emitted(*steps, (Opcode.VECTOR, [V], []))
    assert [each.opcode for each in found[5:]] == [Opcode.NOP, Opcode.VECTOR]
    assert found[5].unit == Unit.VECTOR
    assert {wait.unit for each in found[5:] for wait in each.waits} == {Unit.LOAD, Unit.CONVERT, Unit.DRAIN, Unit.STORE,
                                                                       Unit.WEIGHTS}


def test_random_programs_are_ordered():
    """Any two accesses of one address, of which one is a write, are ordered by waits and units' own orders."""
    rng = np.random.default_rng(1)
    units = [Opcode.LOAD, Opcode.STORE, Opcode.CONVERT, Opcode.VECTOR, Opcode.DRAIN]
    steps = []
    for _ in range(150):
        spans = [("V", int(a), int(a) + int(n)) for a, n in zip(rng.integers(0, 24, 3), rng.integers(1, 6, 3),
                                                                strict=True)]
        cut = int(rng.integers(0, 3))
        steps.append((units[rng.integers(len(units))], spans[:cut], spans[cut:]))
    found = emitted(*steps)
    counts, names, after = {}, [], []
    for each in found:
        counts[each.unit] = counts.get(each.unit, 0) + 1
        mine = (each.unit, counts[each.unit])
        before = {names[i] for i in range(len(names)) if names[i][0] == each.unit}
        before |= {name for name in names for wait in each.waits if name[0] == wait.unit and name[1] <= wait.count}
        every = set(before)
        for name, known in after:
            if name in before:
                every |= known
        names.append(mine)
        after.append((mine, every))
    real = [(mine, every) for (mine, every), each in zip(after, found, strict=True) if each.opcode != Opcode.NOP]
    for j, (_, writes_and) in enumerate(zip(real, steps, strict=True)):
        for i in range(j):
            clash = any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for first, second in
                        ((steps[i][2], writes_and[1] + writes_and[2]), (steps[i][1], writes_and[2]))
                        for a in first for b in second)
            assert not clash or real[i][0] in real[j][1], (i, j)


def test_rings_come_round():
    ring = Ring("W", 4, 20, 4)
    taken = [ring.take(8), ring.take(5), ring.take(1)]
    assert taken == [Span("W", 4, 12), Span("W", 12, 20), Span("W", 4, 8)]
    line = "it needs 20 words of memory W at a time, not 16; larger --w-words would do"
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
        ring.take(17)


def test_two_that_are_half_of_a_ring_are_apart_wherever_it_is():
    ring = Ring("X", 0, 16)
    ring.take(7)
    one, other = ring.take(8), ring.take(8)
    assert one.stop > other.start == 0 and one.start < other.stop    # what comes next would be written over the first
    for taken in range(17):
        ring.take(taken)
        assert ring.two(8) == (Span("X", 0, 8), Span("X", 8, 16))
    with pytest.raises(LoweringError):
        ring.two(17)


def test_what_is_kept_is_not_given_away():
    ring = Ring("V", 0, 16)
    ring.take(4)
    kept = [ring.take(6, kept=True), ring.take(3, kept=True)]
    assert kept == [Span("V", 4, 10), Span("V", 10, 13)]
    assert [ring.take(3), ring.take(4), ring.take(3)] == [Span("V", 13, 16), Span("V", 0, 4), Span("V", 13, 16)]
    line = "it needs 5 words of memory V beside 9 others, of 16; larger --v-words would do"
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
        ring.take(5)
    ring.release()
    assert ring.take(5) == Span("V", 0, 5)
