"""The core's way out, cycle by cycle: when results leave, and when operands of their columns are taken.

Twin of ``rtl/core/drain.py`` and, where nothing stalls, of ``rtl/core/credit_drain.py``.
"""

import numpy as np
from numba import njit

from .record import Record, made, part, record

#: Bits of a command's steps that take an operand.
SCALE, BIAS = 1, 2
COMMAND = record("rows passes steps wide_x sparse")
#: Stages behind a bank's word.
_STAGES = 4
_LAST = 1 << _STAGES - 1
_PAIR = (np.int64, (2,))

STATE = record(
    # What follows from the design: cycles of a row to its queue, 0 where rows stall on their way; cycles that a row and
    # an operand take in the side unit.
    "way turns "
    # Complete banks, the bank and row that are read, stages that hold a row, those that hold the last one, operands
    # taken; the turn of the row that was read, stages that hold a last turn, parts of an operand that are taken.
    "complete current row valid final got turn whole part "
    # Where nothing stalls: words behind its queue's head, credits, banks that were read, operands that are being
    # loaded, cycles until the next row may be read, and until a bank's last row has had all its turns, 0: none.
    "waiting credits read load rest leaving",
    # A bank is read; all its rows were; the queue has a head, a credit comes back.
    "reading over head back "
    # Wires, set by the unit drain: an operand is transferred; one is there; a row of results would be taken.
    "v offered o",
    # Cycles until a bank is complete, 0: none; each bank's command.
    due=_PAIR, commands=(COMMAND, (2,)))


def fresh(latency: dict[str, int]) -> Record:
    """The state at reset; ``latency`` is the manifest's."""
    state = made(STATE, turns=latency["row"])
    if latency["drain"] > latency["apart"]:
        state["way"] = latency["apart"]
        state["credits"] = max(-(-(latency["apart"] + 4) // latency["row"]), 2)    # as rtl/lib/credits.py has
    return state


@njit
def o_valid(s: Record) -> bool:
    """Whether there is a row of results."""
    return s.head if s.way else s.valid & s.whole & _LAST != 0


@part
def _pending(s):
    """A bank may be read out as soon as its operands are there, and the rows before have left."""
    left = s.valid & ((1 << s.way - 2) - 1) if s.way else s.valid
    return s.complete >> s.current & 1 == 1 and not s.reading and left == 0


@part
def asks(s: Record) -> bool:
    """Whether an operand is waited for."""
    return _pending(s) and s.commands[s.current].steps & ~s.got != 0


@njit
def v_ready(s: Record) -> bool:
    """Whether an operand is taken; where it takes several cycles, one that is there."""
    if s.way:
        return s.load & 2 != 0 if s.turns == 1 else s.load == 1 and s.part == s.turns - 1
    return asks(s) and s.part == s.turns - 1


@part
def past(s: Record, row: int) -> bool:
    """Whether the command that is read out is past a row, where its results have one bank."""
    if s.reading:
        return row < s.row or s.over
    return s.read != 0 if s.way else s.valid & 1 == 1


@part
def past_shared(s: Record, row: int) -> bool:
    """The same where columns share an accumulator and ``row`` is the one that is accumulated."""
    if s.way:
        return s.reading and (row < s.row or s.over)
    return row < s.row if s.reading else s.valid & 1 == 1


@part
def step(s: Record) -> int:
    """The end of a cycle: banks that get free, by bit."""
    return _leave(s) if s.way else _leave_stalling(s)


@part
def _done(s):
    """Banks that are complete with this cycle, by bit."""
    done = 0
    for bank in range(2):
        if s.due[bank] > 0:
            s.due[bank] -= 1
            if s.due[bank] == 0:
                done |= 1 << bank
    return done


@part
def _leave_stalling(s):
    """The way out for a cycle, from what its registers are: banks that get free."""
    move = not o_valid(s) or s.o
    held = s.valid & 1 == 1
    whole = s.turn == s.turns - 1
    step = move and (whole or not held)
    last = s.row + 1 == s.commands[s.current].rows
    want = s.commands[s.current].steps & ~s.got
    start = _pending(s) and want == 0
    leaves = s.valid & s.final & 1 == 1 and step
    freed = 1 << s.current if leaves else 0
    done, reading = _done(s), s.reading
    if s.offered and asks(s):
        s.part = 0 if s.v else s.part + 1
    if s.v:
        s.got |= SCALE if want & SCALE else BIAS
    if start:
        s.got, s.reading, s.row = 0, True, 0
    if reading and step:
        s.row += 1
        if last:
            s.reading = False
    if move:
        s.valid = (s.valid << 1 | (reading if step else held)) & (2 * _LAST - 1)
        s.final = (s.final << 1 | (last if step else s.final & 1)) & (2 * _LAST - 1)
        s.whole = (s.whole | whole) << 1 & (2 * _LAST - 1)
        if held:
            s.turn = 0 if whole else s.turn + 1
    if leaves:
        s.current ^= 1
    s.complete = (s.complete | done) & ~freed
    return freed


@part
def _leave(s):
    """The same where nothing stalls; rtl/core/credit_drain.py."""
    freed = s.read
    issue = s.reading and not s.over and s.credits > 0 and s.rest == 0
    last = s.row + 1 == s.commands[s.current].rows
    want = s.commands[s.current].steps & ~s.got
    pending = _pending(s)
    s.rest = s.turns - 1 if issue else max(s.rest - 1, 0)
    if issue and last:
        s.over, s.leaving = True, s.turns
    leaves = 1 << s.current if s.leaving == 1 else 0
    s.leaving = max(s.leaving - 1, 0)
    read = s.waiting > 0 and (s.o or not s.head)
    back = s.head and s.o
    s.waiting += (s.valid >> s.way - 1 & 1) - read
    s.head = read or (s.head and not s.o)
    s.credits += s.back - issue
    s.back = back
    s.valid = (s.valid << 1 | issue) & ((1 << s.way) - 1)
    if s.turns == 1:
        s.load = (s.load & 1) << 1 | (pending and want != 0 and s.load == 0)
    else:
        if s.load:
            s.part = 0 if s.part == s.turns - 1 else s.part + 1
        s.load = pending and want != 0 and s.offered and not (s.load and s.part == 0)
    s.complete = (s.complete | _done(s)) & ~leaves
    s.read = leaves
    if s.v:
        s.got |= SCALE if want & SCALE else BIAS
    if issue:
        s.row += 1
    if leaves:
        s.reading = s.over = False
        s.current ^= 1
    if pending and want == 0:
        s.got, s.reading, s.row = 0, True, 0
    return freed
