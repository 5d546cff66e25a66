"""The core, cycle by cycle: what is taken and given, and when; the registers of ``rtl/core`` that decide it.

Rows, weights and results have no values here. Columns that share an accumulator, wide mantissas and sparse weights,
which an accelerator's core has not, are left out.
"""

import numpy as np
from numba import njit

from hbfp.design import Design

from .record import Record, made, record

#: Tiles that the weight buffer holds; stages of the way out behind a bank's word.
TILES, STAGES = 2, 4
_LAST = 1 << STAGES - 1
#: Bits of a command's steps that take an operand.
SCALE, BIAS = 1, 2
COMMAND = record("rows passes steps")
_PAIR = (np.int64, (2,))

STATE = record(
    # What follows from the design; ``way``: cycles of a row to its queue, 0 where rows stall on their way.
    "rows interval through release way "
    # Weight buffer: tiles taken, row of the tile, tiles filled.
    "taken tile_row filled "
    # Sequencer: commands held; until the next pass, its bank, row and pass.
    "held gap bank row tile "
    # Way out: complete banks, free banks, the bank and row that are read, stages that hold a row, those that hold the
    # last one, operands taken.
    "complete free current out_row valid final got "
    # The same where nothing stalls: words behind its queue's head, credits, banks that were read, operands that are
    # being loaded.
    "waiting credits read load",
    # Weight buffer: a tile became full in the last cycle. Way out: a bank is read; the queue has a head, a credit
    # comes back.
    "full reading head back "
    # Wires, set by the units: a row of weights, one of X, a command and an operand are transferred; a row of results
    # would be taken.
    "w x commanded v o",
    # Cycles until the tiles of up to two passes are released, and until a bank is complete, 0: none; commands of the
    # sequencer, and of each bank.
    until_released=_PAIR, due=_PAIR, commands=(COMMAND, (2,)), out=(COMMAND, (2,)),
    command=COMMAND)    # wire: the one that is transferred


def fresh(design: Design, latency: dict[str, int]) -> Record:
    """The state at reset; ``latency`` is the manifest's."""
    state = made(STATE, rows=design.rows, interval=latency["interval"],
                 through=latency["array"] + latency["accumulate"], release=latency["release"], free=3)
    if latency["vector"] > 1:
        state["way"], state["credits"] = latency["apart"], latency["apart"] + 4    # as rtl/lib/credits.py has
    return state


@njit
def w_ready(s: Record) -> bool:
    """Whether a row of weights is taken."""
    return s.taken != TILES or s.tile_row != 0


@njit
def x_ready(s: Record) -> bool:
    """Whether a row of X is taken."""
    if s.held == 0:
        return False
    if s.row != 0:
        return True
    return s.filled != 0 and s.gap == 0 and (s.tile != 0 or s.free >> s.bank & 1 == 1)


@njit
def command_ready(s: Record) -> bool:
    """Whether a command is taken."""
    return s.held != 2


@njit
def o_valid(s: Record) -> bool:
    """Whether there is a row of results."""
    return s.head if s.way else s.valid & _LAST != 0


@njit
def _pending(s):
    """A bank may be read out as soon as its operands are there, and the rows before have left."""
    left = s.valid & ((1 << s.way - 2) - 1) if s.way else s.valid
    return s.complete >> s.current & 1 == 1 and not s.reading and left == 0


@njit
def v_ready(s: Record) -> bool:
    """Whether an operand is taken."""
    if s.way:
        return s.load & 2 != 0
    return _pending(s) and s.out[s.current].steps & ~s.got != 0


@njit
def _done(s):
    """Banks that are complete with this cycle, by bit."""
    done = 0
    for bank in range(2):
        if s.due[bank] > 0:
            s.due[bank] -= 1
            if s.due[bank] == 0:
                done |= 1 << bank
    return done


@njit
def _leave_stalling(s):
    """The way out for a cycle, from what its registers are: banks that get free."""
    move = not o_valid(s) or s.o
    last = s.out_row + 1 == s.out[s.current].rows
    want = s.out[s.current].steps & ~s.got
    start = _pending(s) and want == 0
    leaves = s.valid & s.final & 1 == 1 and move
    freed = 1 << s.current if leaves else 0
    done, reading = _done(s), s.reading
    if s.v:
        s.got |= SCALE if want & SCALE else BIAS
    if start:
        s.got, s.reading, s.out_row = 0, True, 0
    if reading and move:
        s.out_row += 1
        if last:
            s.reading = False
    if move:
        s.valid = (s.valid << 1 | reading) & (2 * _LAST - 1)
        s.final = (s.final << 1 | last) & (2 * _LAST - 1)
    if leaves:
        s.current ^= 1
    s.complete = (s.complete | done) & ~freed
    return freed


@njit
def _leave(s):
    """The same where nothing stalls; rtl/core/credit_drain.py."""
    freed = s.read
    issue = s.reading and s.credits > 0
    last = s.out_row + 1 == s.out[s.current].rows
    want = s.out[s.current].steps & ~s.got
    pending = _pending(s)
    leaves = 1 << s.current if issue and last else 0
    read = s.waiting > 0 and (s.o or not s.head)
    back = s.head and s.o
    s.waiting += (s.valid >> s.way - 1 & 1) - read
    s.head = read or (s.head and not s.o)
    s.credits += s.back - issue
    s.back = back
    s.valid = (s.valid << 1 | issue) & ((1 << s.way) - 1)
    s.load = (s.load & 1) << 1 | (pending and want != 0 and s.load == 0)
    s.complete = (s.complete | _done(s)) & ~leaves
    s.read = leaves
    if s.v:
        s.got |= SCALE if want & SCALE else BIAS
    if issue:
        s.out_row += 1
    if leaves:
        s.reading = False
        s.current ^= 1
    if pending and want == 0:
        s.got, s.reading, s.out_row = 0, True, 0
    return freed


@njit
def step(s: Record) -> None:
    """The end of a cycle."""
    freed = _leave(s) if s.way else _leave_stalling(s)
    starts = _sequence(s, freed)
    _buffer(s, starts)


@njit
def _sequence(s, freed):
    """The sequencer; whether a pass starts."""
    starts = s.x and s.row == 0
    begins = 0
    if starts and s.tile == 0:
        begins = 1 << s.bank
        s.out[s.bank] = s.commands[0]
    if s.gap != 0 and (s.x or s.row == 0):
        s.gap -= 1
    if starts:
        s.gap = s.interval - 1
    s.free = s.free & ~begins | freed
    if s.x:
        s.row += 1
        if s.row == s.commands[0].rows:
            s.row = 0
            s.tile += 1
            if s.tile == s.commands[0].passes:
                s.tile = 0
                s.due[s.bank] = s.through
                s.bank ^= 1
                s.commands[0] = s.commands[1]
                s.held -= 1
    if s.commanded:
        s.commands[s.held] = s.command
        s.held += 1
    return starts


@njit
def _buffer(s, starts):
    """The weight buffer; ``starts``: a pass does."""
    for place in range(2):
        if s.until_released[place] > 0:
            s.until_released[place] -= 1
            s.taken -= s.until_released[place] == 0
    if starts:    # two passes start further apart than half the time until the release
        s.until_released[0 if s.until_released[0] == 0 else 1] = s.release
    full = False
    if s.w:
        s.taken += s.tile_row == 0
        s.tile_row += 1
        if s.tile_row == s.rows:
            s.tile_row = 0
            full = True
    s.filled += s.full - starts
    s.full = full
