# amaranth: UnusedElaboratable=no
"""The weight buffer in one cycle, from any state and for all inputs: rows of tiles in their order, none lost or twice.

What :class:`rtl.array.weights.WeightBuffer` promises of a buffer of two tiles: a row is written behind the one before
it, while no more than two tiles are filled, wait, or are read out; a tile that is whole is told of once, and its words
are read once each, in their order. That a start's words have left when its rows count as free is tested, by cycles.
"""

import pytest
from z3 import ULE, ULT, And, BitVecVal, If, Implies, LShR, Or

from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.array.weights import WeightBuffer
from tests.cases import sweep
from tests.formal.prove import Laws
from tests.formal.streams import broken
from tests.formal.views import around, high, number, part


def laws(cut):
    """Laws of a buffer of two tiles, whose words are given out a cycle apart."""
    now, then, params = cut.step.now, cut.step.then, cut.cell.params
    rows, words, tall = params.rows, params.words, params.group[0]
    beat = And(now.i__valid, now.i__ready)
    row, slot, word, pointer, read = (number(each) for each in (
        now.tile_row, now.slot, now.word, now.pointer, now.tile_word))
    taken, filled = number(now.taken), number(now.filled)
    started = [vars(now)[f"start_{place}"] for place in range(1, params.release + 1)]
    ends = And(beat, row == rows - 1)
    within = number(now.row) if tall > 1 else BitVecVal(0, 8)
    advances = Or(now.start, read != 0)

    def after(place, moves, size):
        return If(moves, around(place + 1, size), place)
    found = {
        "rows follow each other": And(number(then.tile_row) == after(row, beat, rows),
                                      number(then.slot) == slot + number(ends) & 1),
        "room": now.i__ready == Or(taken != 2, row != 0),
        "whole tiles": And(then.done == ends, number(then.filled) == filled + number(now.done) - number(now.start),
                           now.ready == (filled != 0)),
        "words follow each other": And(number(then.tile_word) == after(read, advances, words),
                                       number(then.pointer) == after(pointer, advances, 2 * words)),
    }
    for group in range(params.groups):
        bank = {name: vars(now)[f"bank{group}.{name}"] for name in ("w_en", "w_addr", "w_data")}
        places = [part(bank["w_en"], 1, each) == 1 for each in range(tall)] if tall > 1 else [bank["w_en"]]
        size = bank["w_data"].size() // tall
        found[f"a row is written in its place, {group}"] = And(number(bank["w_addr"]) == word, *(
            en == And(beat, within == each) for each, en in enumerate(places)), *(
            part(bank["w_data"], size, each) == part(now.i__payload, size, group) for each in range(tall)))
    always = {
        "tiles": And(taken == number(row != 0) + number(now.done) + filled + high(started), ULE(taken, 2)),
        "places": And(ULT(row, rows), ULT(within, tall), ULT(read, words), ULT(pointer, 2 * words),
                      word == slot * words + LShR(row - within, tall.bit_length() - 1), ULT(slot, 2),
                      row - within & tall - 1 == 0, pointer & words - 1 == read),    # which are powers of two
    }
    # A tile is taken while there is one, and so long after the one before that its words have been read.
    given = [Implies(now.start, And(now.ready, read == 0))]
    return Laws(found, always, cut.given + given, None)


@pytest.mark.parametrize("rows, cols, group", sweep(2, [(4, 4, (2, 2)), (4, 2, (4, 2)), (8, 4, (2, 4))]))
def test_laws(rows, cols, group):
    design = Design(rows=rows, cols=cols, depth=4, group=group, format=HBFPFormat(mantissa=4, block=(1, rows)))
    assert not broken(WeightBuffer.of(design), laws)
