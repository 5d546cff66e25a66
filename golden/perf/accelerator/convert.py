"""The unit convert, cycle by cycle; twin of ``convert.py``, ``block_order.py`` and ``transposer.py`` of the RTL."""

import numpy as np
from numba import njit

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import ports
from .record import Record, made, part, record

UNIT = int(Unit.CONVERT)
_V_READ, _X_WRITE, _W_WRITE, _W_SCALES, _W_INDEX = (
    ports.NUMBER[name] for name in ("v_read", "x_write", "w_write", "w_scales", "w_index"))
_LOOPS = 6
#: Registers that a word passes where units have them: behind V, before it is converted, and amid that.
_REGISTERS = 3
#: What a register has of a word: whether there is one, it is to be converted, it ends a segment, its square; its place.
_ALONG = 5

STATE = record(
    # Terms of a block, rows of a square, rows of a segment of W; words that a row of the core has, addresses of X that
    # are a word of its memory; how far apart columns of a square come to X, 0: as words say;
    # rows of W that a word of V has, those of sparse weights.
    "terms side height pieces each apart sparse_rows "
    # Of the instruction, as its fields.
    "words rows part stride base target target_row target_word "
    # Columns of the transposer that are read, and leave.
    "column leaving "
    # Addresses in X: of the word that V gives, or of the first column of its square; of its mantissas; of the columns
    # that are read; of the one that leaves.
    "into later_into square_into leaving_into",
    # Whether elements share exponents, blocks are square, and rows of squares for X may be left out; an instruction is
    # under way, and what it says; the unit was busy in the last cycle.
    "shared square short active by_columns turned to_w was_busy "
    # Rows are columns of W and wide: one half comes in place of the other. Weights are sparse.
    "halves sparse "
    # The word that V gives: whether there is one, it is to be converted, it ends a segment, its square; its mantissas
    # are there one cycle later, and end their square; the transposer's columns are read, leave.
    "word converts segment ends later later_ends reading leaves "
    # Of the word that is asked for: it is to be converted, it ends a segment, its square. Units have registers.
    "asked_converts asked_segment asked_ends registered",
    loop=(np.int64, (_LOOPS,)),    # the innermost first
    way=(np.int64, (_REGISTERS, _ALONG)))    # of the words in registers, the one that came last first


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    core = accelerator.core
    side, terms = accelerator.lanes, core.format.terms
    return made(STATE, terms=terms if core.blocked else min(terms, side), side=side, shared=core.blocked,
                short=(core.blocked and terms == side == core.height and side == core.rows),
                square=core.format.square, sparse_rows=side // accelerator.spread,
                height=min(core.height, terms, side), pieces=accelerator.row_pieces,
                each=accelerator.x_line, apart=0 if accelerator.oblong else 1, registered=accelerator.registered)


@part
def _ends_segment(s, row):
    """Whether a row of W that a square gives ends a segment; of sparse weights, too, of which it gives fewer."""
    height = min(s.height, s.sparse_rows) if s.sparse else s.height
    return row % height == height - 1


@part
def _busy(s):
    """Whether the unit is at work."""
    return s.active or s.way[:, 0].any() or s.word or s.later or s.reading or s.leaves


@part
def _row(s):
    """The row of the matrix whose word is next."""
    if s.terms <= s.side:    # rows of a block, twice if need be, blocks of a square, words, squares of rows
        return s.loop[0] + s.loop[2] * s.terms + s.loop[4] * s.side
    high = s.square or s.by_columns
    return s.loop[0] + s.loop[2] * s.side + s.loop[5] * (s.terms if high else s.side)


@part
def _source(s):
    """The row whose word comes: the next one, or the one that comes in its place; beyond the matrix, one of zeros."""
    row = _row(s)
    if s.halves and (not s.square or s.loop[1 if s.terms <= s.side else 3] == 1):
        row = row - row % 2 + s.part
    return row


@part
def _word(s):
    """The word of the row that is next."""
    if s.terms <= s.side:
        return s.loop[3]
    return s.loop[1] + s.loop[4] * (s.terms // s.side if s.square or not s.by_columns else 1)


@part
def _pads(s):
    """Whether the next word is one of zeros: beyond the matrix, or one that fills up a row of the core."""
    return _source(s) >= s.rows or _word(s) >= s.words


@part
def _last(s, word):
    """Whether a word is the last of its row."""
    return word + 1 >= s.words and (s.by_columns or (word + 1) % s.pieces == 0)


@part
def ask(m: Record) -> None:
    """What it asks for in this cycle."""
    s = m.units.convert
    low = m.banks.count - 1
    if s.active and not _pads(s):
        ports.ask(m.ports, _V_READ, UNIT, s.base + _source(s) * s.stride + _word(s) & low)
    if not s.to_w:
        if s.by_columns and s.leaves:
            ports.ask(m.ports, _X_WRITE, UNIT, s.leaving_into // s.each & low)
        if s.later and not s.by_columns:
            ports.ask(m.ports, _X_WRITE, UNIT, s.later_into // s.each & low)
    else:
        if (s.later and s.by_columns) or (s.leaves and (not s.sparse or s.leaving < s.sparse_rows)):
            ports.ask(m.ports, _W_WRITE, UNIT, 0)
        last = s.side - s.sparse_rows    # columns of the transposer before the indices of sparse weights
        if s.shared and ((s.word and s.converts and s.segment and s.by_columns) or (
                s.leaves and (_ends_segment(s, s.leaving) if not s.sparse else
                              s.leaving >= last and _ends_segment(s, s.leaving - last)))):
            ports.ask(m.ports, _W_SCALES, UNIT, 0)
        if s.sparse and s.leaves and s.leaving >= last:
            ports.ask(m.ports, _W_INDEX, UNIT, 0)


@part
def _advance(s):
    """The loops, one word further; whether it was the last one."""
    terms, side, row = s.terms, s.side, _row(s)
    reach = row + 1 >= s.rows
    plain, s.asked_segment = not s.by_columns and not s.turned, (s.loop[0] + 1) % s.height == 0
    c0, c1, c2, c3, c4 = s.loop[0], s.loop[1], s.loop[2], s.loop[3], s.loop[4]
    if terms <= side:
        twice = 1 if s.shared and (s.square or s.by_columns) else 0
        stop = plain and reach
        s.asked_converts = c1 == twice
        # Rows beyond the matrix are not measured, nor converted once the transposer has had time for its last square.
        zeros = reach and (not s.asked_converts or (s.short and s.by_columns and not s.to_w
                                              and c0 + 1 + s.rows % side >= side))
        ends = (c0 == terms - 1 or stop or zeros, c1 == twice, c2 == side // terms - 1 or stop, _last(s, c3),
                reach and (not s.by_columns or (c4 + 1) % s.pieces == 0), True)
    else:
        count = terms // side
        wide, high = s.square or not s.by_columns, s.square or s.by_columns
        end, groups = _last(s, c4 * (count if wide else 1) + c1), max(1, s.pieces // count)
        s.asked_converts = c3 == 1
        ends = (c0 == side - 1 or (plain and reach), c1 == count - 1 or end or not wide,
                c2 == count - 1 or not high or (not s.by_columns and reach), c3 == 1, end,
                reach and (not s.by_columns or (s.loop[5] + 1) % groups == 0))
    s.asked_ends = ends[0] if s.short else row % side == side - 1
    s.asked_segment = s.asked_ends if s.short else s.asked_segment
    for loop in range(_LOOPS):
        if not ends[loop]:
            s.loop[loop] += 1
            return False
        s.loop[loop] = 0
    return True


@njit
def _transpose(s):
    """The transposer, from what its registers are."""
    complete = s.later and s.turned and s.later_ends
    # The next square may be complete while the last column of this one leaves.
    s.leaves, s.leaving, s.leaving_into = s.reading, s.column, s.square_into + s.column * (
        s.apart or s.target_word // s.side)
    if s.reading:
        s.column += 1
        if s.column == s.side:
            s.reading, s.column = False, 0
    if complete:
        s.reading, s.column, s.square_into = True, 0, s.later_into


@part
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q = m.units.convert, m.queues[UNIT]
    f = q.instruction.fields
    now = _busy(s)
    q.done = s.was_busy and not now
    q.takes = q.begins = q.ready and not now
    s.was_busy = now
    _transpose(s)
    s.later, s.later_ends, s.later_into = s.word and s.converts, s.ends, s.into
    asked, row, into = s.active and (_pads(s) or ports.granted(m.ports, _V_READ, UNIT)), _row(s), 0
    if asked:
        by_row = row // s.side if s.turned else row
        into = s.target + by_row * s.target_row + _word(s) * s.target_word
        if _advance(s):
            s.active = False
    new = (int(asked), int(s.asked_converts), int(s.asked_segment), int(s.asked_ends), into)
    if s.registered:
        last = s.way[_REGISTERS - 1]
        s.word, s.converts, s.segment, s.ends, s.into = last[0] > 0, last[1] > 0, last[2] > 0, last[3] > 0, last[4]
        for each in range(_ALONG):
            for place in range(_REGISTERS - 1, 0, -1):
                s.way[place, each] = s.way[place - 1, each]
            s.way[0, each] = new[each]
    else:
        s.word, s.converts, s.segment, s.ends, s.into = (
            asked, s.asked_converts, s.asked_segment, s.asked_ends, into)
    if q.takes:
        s.active = True
        s.by_columns, s.to_w, s.turned = f.columns != 0, f.to_w != 0, f.to_w != f.columns
        s.words, s.rows, s.part, s.stride, s.base = f.words, f.rows, f.part, f.stride, f.base
        s.target, s.target_row, s.target_word = f.target, f.target_row, f.target_word
        s.halves, s.sparse = f.wide != 0 and s.to_w and not s.by_columns, f.sparse != 0
        s.loop[:] = 0
