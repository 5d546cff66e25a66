"""What memories have of DRAM is not brought again, and what has been overwritten is."""

from dataclasses import replace

import numpy as np
import pytest

from golden.lower.builder import Builder
from golden.lower.held import Held
from golden.lower.schedule import Span
from hbfp.design import Design
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator

MACHINE = Accelerator(core=Design(rows=8, cols=8))


def build():
    made = Builder(MACHINE, holds=True)
    return made, made.dram.constant(np.ones((6, 16), np.float32))


def bring(made, value, first=0, rows=6):
    """Where rows of a value come, and how many instructions that takes."""
    before = len(made.schedule.instructions)
    span = made.brought(2 * rows, lambda at: made.load(value, (0,), 1, at, 2, skip=16 * first, rows=[(rows, 16)]))
    return span, len(made.schedule.instructions) - before


def test_what_is_there_is_not_brought_again_in_whole_or_in_part():
    made, value = build()
    span, count = bring(made, value)
    assert count == 1
    assert bring(made, value) == (span, 0)
    assert bring(made, value, 2, 3) == (Span("V", span.start + 4, span.start + 10), 0)
    assert Builder(MACHINE).held is None


def test_what_was_stored_is_there():
    made, value = build()
    made.store(40, 2, value, (0,), 1)
    assert bring(made, value) == (Span("V", 40, 52), 0)


@pytest.mark.parametrize("written", ["V", "DRAM", "parts of words"])
def test_what_was_overwritten_is_brought_again(written):
    made, value = build()
    span, _ = bring(made, value)
    match written:
        case "V":
            made.fill(span.stop - 1, 1)
        case "DRAM":
            made.store(90, 1, value, (), 1, rows=[])
        case _:
            made.gather(value.address, 3, [], 8 * span.start)
    assert bring(made, value)[1] == 1


def test_words_that_a_host_chooses_are_not_known():
    made, value = build()
    span, _ = bring(made, value)
    made.brought_other(span)
    assert bring(made, value)[1] == 1


def test_pieces_that_lie_equally_far_apart_stay():
    """Else all of them come to one place; several of one place are one step of no words."""
    made, _ = build()
    values = [made.dram.constant(np.ones((2, 8), np.float32)) for _ in range(3)]
    loads = [lambda at, value=value: made.load(value, (0,), 1, at, 1) for value in values]
    for start, value in zip((10, 20, 30), values, strict=True):
        made.load(value, (0,), 1, start, 1)
    count = len(made.schedule.instructions)
    assert made.spread(2, [loads, loads[:1] * 2]) == [
        ([Span("V", start, start + 2) for start in (10, 20, 30)], 10), ([Span("V", 10, 12)] * 2, 0)]
    assert len(made.schedule.instructions) == count
    made.v.release()
    (spans, step), = made.spread(2, [loads[::-1]])
    assert step == 2 and spans[0].start not in (10, 20, 30) and len(made.schedule.instructions) == count + 3


def test_pieces_come_anew_where_others_would_find_no_room():
    """V has 64 words, of which one piece of 24 lies in the middle."""
    made = Builder(replace(MACHINE, v_words=64), holds=True)
    value, made.v.next = made.dram.constant(np.ones((12, 16), np.float32)), 20

    def load(at):
        made.load(value, (0,), 1, at, 2)
    load(20)
    assert made.several(24, [load]) == [Span("V", 20, 44)]
    made.v.release()
    count, (first, other) = len(made.schedule.instructions), made.several(24, [load, None])
    assert {first.start, other.start} == {0, 24} and len(made.schedule.instructions) == count + 1


def test_converted_operands_are_known_until_they_or_their_source_are_overwritten():
    for memory, start in (("X", 3), ("DRAM", 500)):
        held = Held(MACHINE)
        held.keep("key", Span("X", 0, 8), Span("DRAM", 400, 600))
        assert held.kept("key") == Span("X", 0, 8) and held.kept("other") is None
        held.note(Opcode.CONVERT, {}, [Span(memory, start + 1000, start + 1001)])
        assert held.kept("key") is not None
        held.note(Opcode.CONVERT, {}, [Span(memory, start, start + 1)])
        assert held.kept("key") is None
    held.keep("key", Span("X", 0, 8), Span("DRAM", 400, 600))
    held.forget_all()
    assert held.kept("key") is None
