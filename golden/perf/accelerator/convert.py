"""The unit convert, cycle by cycle; twin of ``convert.py``, ``block_order.py`` and ``transposer.py`` of the RTL."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hbfp.design import Design
from hbfp.isa.instructions import Opcode

from .decode import places

State = NDArray[np.int64]
_C = places(Opcode.CONVERT)
_COLUMNS, _TO_W, _WORDS, _ROWS = (_C[name] for name in ("columns", "to_w", "words", "rows"))

#: Places of the state: terms of a block, rows of the core, whether blocks are square, segments;
(TERMS, SIDE, SQUARE, SEGMENTS,
 # whether an instruction is under way, and what it says; whether the unit was busy in the last cycle;
 ACTIVE, BY_COLUMNS, TURNED, TO_W, WORDS, ROWS, WAS_BUSY,
 # the word that V gives: whether there is one, it is to be converted, it ends a segment, its row in the square; the
 # same of its mantissas one cycle later;
 WORD, CONVERTS, SEGMENT, ROW, LATER, LATER_ROW,
 # the transposer: whether columns are read, which; whether one leaves, which.
 READING, COLUMN, LEAVES, LEAVING,
 # the loops, the innermost first.
 LOOP) = range(22)
_LOOPS = 6
SIZE = LOOP + _LOOPS


def fresh(core: Design) -> State:
    """The state at reset."""
    state = np.zeros(SIZE, np.int64)
    state[[TERMS, SIDE, SQUARE, SEGMENTS]] = core.format.terms, core.rows, core.format.square, core.segments
    return state


@njit
def busy(s: State) -> bool:
    """Whether the unit is at work."""
    return s[ACTIVE] + s[WORD] + s[LATER] + s[READING] + s[LEAVES] > 0


@njit
def _row(s):
    """The row of the matrix whose word is next."""
    r, side = s[LOOP], s[SIDE]
    if s[TERMS] <= side:    # rows of a block, twice if need be, blocks of a square, words, squares of rows
        return r + s[LOOP + 2] * s[TERMS] + s[LOOP + 4] * side
    high = s[SQUARE] or s[BY_COLUMNS]
    return r + s[LOOP + 2] * side + s[LOOP + 5] * (s[TERMS] if high else side)


@njit
def reads(s: State) -> bool:
    """Whether a word of V is asked for."""
    return s[ACTIVE] == 1 and _row(s) < s[ROWS]


@njit
def writes_w(s: State) -> bool:
    """Whether mantissas are written to W."""
    return s[TO_W] == 1 and ((s[LATER] == 1 and s[BY_COLUMNS] == 1) or s[LEAVES] == 1)


@njit
def writes_scales(s: State) -> bool:
    """Whether exponents are written to W."""
    height = s[SIDE] // s[SEGMENTS]
    return s[TO_W] == 1 and ((s[WORD] & s[CONVERTS] & s[SEGMENT] & s[BY_COLUMNS]) == 1
                             or (s[LEAVES] == 1 and s[LEAVING] % height == height - 1))


@njit
def _advance(s):
    """The loops, one word further; whether it was to be converted, ends a segment, and was the last one."""
    terms, side, row = s[TERMS], s[SIDE], _row(s)
    reach = row + 1 >= s[ROWS]
    plain = s[BY_COLUMNS] == 0 and s[TURNED] == 0
    c0, c1, c2, c3, c4 = s[LOOP], s[LOOP + 1], s[LOOP + 2], s[LOOP + 3], s[LOOP + 4]
    if terms <= side:
        twice = 1 if s[SQUARE] else s[BY_COLUMNS]
        stop = plain and reach
        converts, segment = c1 == twice, c0 == terms - 1
        ends = (c0 == terms - 1 or stop, converts, c2 == side // terms - 1 or stop, c3 + 1 == s[WORDS], reach, True)
    else:
        count = terms // side
        wide, high = s[SQUARE] or not s[BY_COLUMNS], s[SQUARE] or s[BY_COLUMNS]
        end = c4 * (count if wide else 1) + c1 + 1 >= s[WORDS]
        converts, segment = c3 == 1, c0 == side - 1
        ends = (c0 == side - 1 or (plain and reach), c1 == count - 1 or end or not wide,
                c2 == count - 1 or not high or (s[BY_COLUMNS] == 0 and reach), converts, end, reach)
    for loop in range(_LOOPS):
        if not ends[loop]:
            s[LOOP + loop] += 1
            return converts, segment, False
        s[LOOP + loop] = 0
    return converts, segment, True


@njit
def step(s: State, offered: bool, fields: State, granted: bool) -> tuple[bool, bool]:
    """A cycle: whether an instruction is taken, and whether one is done; ``granted``: V gives what is asked for."""
    now = busy(s)
    done = s[WAS_BUSY] == 1 and not now
    taken = offered and not now
    s[WAS_BUSY] = now
    side = s[SIDE]
    # The transposer, from what its registers are.
    complete = s[LATER] == 1 and s[TURNED] == 1 and s[LATER_ROW] == side - 1
    s[LEAVES], s[LEAVING] = s[READING], s[COLUMN]
    if s[READING]:
        s[COLUMN] += 1
        if s[COLUMN] == side:
            s[READING], s[COLUMN] = 0, 0
    if complete:
        s[READING], s[COLUMN] = 1, 0
    # The words.
    s[LATER], s[LATER_ROW] = s[WORD] & s[CONVERTS], s[ROW]
    s[WORD] = s[ACTIVE] == 1 and (granted or _row(s) >= s[ROWS])
    if s[WORD]:
        s[ROW] = _row(s) % side
        converts, segment, last = _advance(s)
        s[CONVERTS], s[SEGMENT] = converts, segment
        if last:
            s[ACTIVE] = 0
    if taken:
        s[ACTIVE] = 1
        s[BY_COLUMNS], s[TO_W], s[TURNED] = fields[_COLUMNS], fields[_TO_W], fields[_TO_W] ^ fields[_COLUMNS]
        s[WORDS], s[ROWS] = fields[_WORDS], fields[_ROWS]
        s[LOOP:] = 0
    return taken, done
