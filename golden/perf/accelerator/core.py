"""The core, cycle by cycle: what is taken and given, and when; the registers of ``rtl/core`` that decide it.

Rows, weights and results have no values here. Wide mantissas and sparse weights, which an accelerator's core has not,
are left out. Where columns share an accumulator, :mod:`golden.perf.accelerator.shared` has when rows are accumulated.
"""

import numpy as np
from numba import njit

from hbfp.design import Design

from ..cycles import ring_words
from . import shared
from .record import Record, made, record

#: Tiles that the weight buffer holds, unless it holds one and some words; stages of the way out behind a bank's word.
TILES, STAGES = 2, 4
_LAST = 1 << STAGES - 1
#: Bits of a command's steps that take an operand.
SCALE, BIAS = 1, 2
COMMAND = record("rows passes steps")
_PAIR = (np.int64, (2,))

STATE = record(
    # What follows from the design; ``way``: cycles of a row to its queue, 0 where rows stall on their way; cycles that
    # a row and an operand take in the side unit.
    "rows interval through release way turns "
    # Rows that the weight buffer takes and lets go together, as many parts of a tile, parts that it holds, cycles from
    # one that goes to the next; banks of results, passes of a block.
    "height parts most apart banks block "
    # Weight buffer: parts taken, row of the tile, tiles filled.
    "taken tile_row filled "
    # Sequencer: commands held; until the next pass, its bank, row and pass, and the pass's place in its block.
    "held gap bank row tile place "
    # Way out: complete banks, free banks, the bank and row that are read, stages that hold a row, those that hold the
    # last one, operands taken; the turn of the row that was read, stages that hold a last turn, parts of an operand
    # that are taken.
    "complete free current out_row valid final got turn whole part "
    # The same where nothing stalls: words behind its queue's head, credits, banks that were read, operands that are
    # being loaded, cycles until the next row may be read, and until a bank's last row has had all its turns, 0: none.
    "waiting credits read load rest leaving",
    # Weight buffer: a tile became full in the last cycle. Way out: a bank is read; all its rows were; the queue has a
    # head, a credit comes back.
    # Sequencer: no pass of the command has closed a block.
    "full reading over head back fresh "
    # Wires, set by the units: a row of weights, one of X, a command and an operand are transferred; an operand is
    # there; a row of results would be taken.
    "w x commanded v offered o",
    # Cycles until the next parts of the tiles of up to two passes are released, and how many there are; cycles until a
    # bank is complete, 0: none; commands of the sequencer, and of each bank.
    until_released=_PAIR, left=_PAIR, due=_PAIR, shared=shared.STATE, commands=(COMMAND, (2,)), out=(COMMAND, (2,)),
    command=COMMAND)    # wire: the one that is transferred


def fresh(design: Design, latency: dict[str, int]) -> Record:
    """The state at reset; ``latency`` is the manifest's."""
    state = made(STATE, rows=design.rows, interval=latency["interval"],
                 through=latency["array"] + latency["accumulate"], release=latency["release"], free=3,
                 turns=latency["row"], height=design.rows, parts=1, most=TILES, banks=design.banks,
                 block=design.block_tiles, fresh=True, shared=shared.fresh(design, latency))
    if design.weight_tiles == 1:
        assert design.group is not None
        state["height"], state["parts"] = design.group[0], design.group_rows
        state["most"], state["apart"] = ring_words(design, latency), latency["word"]
    if latency["drain"] > latency["apart"]:
        state["way"] = latency["apart"]
        state["credits"] = max(-(-(latency["apart"] + 4) // latency["row"]), 2)    # as rtl/lib/credits.py has
    return state


@njit
def w_ready(s: Record) -> bool:
    """Whether a row of weights is taken."""
    return s.taken != s.most or s.tile_row % s.height != 0


@njit
def x_ready(s: Record) -> bool:
    """Whether a row of X is taken."""
    if s.held == 0 or _closes(s) and not _room(s):
        return False
    if s.row != 0:
        return True
    return s.filled != 0 and s.gap == 0 and (s.tile != 0 or s.free >> s.bank & 1 == 1)


@njit
def _closes(s):
    """Whether the pass closes a block."""
    return s.place == s.block - 1 or s.tile + 1 == s.commands[0].passes


@njit
def _room(s):
    """Whether a row of a pass that closes a block finds room for its sums."""
    if s.shared.columns > 1:
        return shared.room(s.shared, s.row)
    return s.banks == 2 or s.free >> (s.bank ^ 1) & 1 == 1 or (s.fresh and _vacant(s, s.row))


@njit
def _vacant(s, row):
    """Whether the command that is read out is past a row, where its results have one bank."""
    if s.reading:
        return row < s.out_row or s.over
    return s.read != 0 if s.way else s.valid & 1 == 1


@njit
def command_ready(s: Record) -> bool:
    """Whether a command is taken."""
    return s.held != 2


@njit
def o_valid(s: Record) -> bool:
    """Whether there is a row of results."""
    return s.head if s.way else s.valid & s.whole & _LAST != 0


@njit
def _pending(s):
    """A bank may be read out as soon as its operands are there, and the rows before have left."""
    left = s.valid & ((1 << s.way - 2) - 1) if s.way else s.valid
    return s.complete >> s.current & 1 == 1 and not s.reading and left == 0


@njit
def asks(s: Record) -> bool:
    """Whether an operand is waited for."""
    return _pending(s) and s.out[s.current].steps & ~s.got != 0


@njit
def v_ready(s: Record) -> bool:
    """Whether an operand is taken; where it takes several cycles, one that is there."""
    if s.way:
        return s.load & 2 != 0 if s.turns == 1 else s.load == 1 and s.part == s.turns - 1
    return asks(s) and s.part == s.turns - 1


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
    held = s.valid & 1 == 1
    whole = s.turn == s.turns - 1
    step = move and (whole or not held)
    last = s.out_row + 1 == s.out[s.current].rows
    want = s.out[s.current].steps & ~s.got
    start = _pending(s) and want == 0
    leaves = s.valid & s.final & 1 == 1 and step
    freed = 1 << s.current if leaves else 0
    done, reading = _done(s), s.reading
    if s.offered and asks(s):
        s.part = 0 if s.v else s.part + 1
    if s.v:
        s.got |= SCALE if want & SCALE else BIAS
    if start:
        s.got, s.reading, s.out_row = 0, True, 0
    if reading and step:
        s.out_row += 1
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


@njit
def _leave(s):
    """The same where nothing stalls; rtl/core/credit_drain.py."""
    freed = s.read
    issue = s.reading and not s.over and s.credits > 0 and s.rest == 0
    last = s.out_row + 1 == s.out[s.current].rows
    want = s.out[s.current].steps & ~s.got
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
        s.out_row += 1
    if leaves:
        s.reading = s.over = False
        s.current ^= 1
    if pending and want == 0:
        s.got, s.reading, s.out_row = 0, True, 0
    return freed


@njit
def _vacant_shared(s):
    """Whether the command that is read out is past the row that is accumulated."""
    if s.way:
        return s.reading and (s.shared.place < s.out_row or s.over)
    return s.shared.place < s.out_row if s.reading else s.valid & 1 == 1


@njit
def step(s: Record) -> None:
    """The end of a cycle."""
    if s.shared.columns > 1:
        # Results have one bank: of the command before, if there is one that is complete.
        vacant = s.complete == 0 or _vacant_shared(s)
        turned = shared.step(s.shared, s.x and _closes(s), s.row, s.commands[0].rows,
                             s.tile + 1 == s.commands[0].passes, s.bank, vacant, s.due[0] + s.due[1] > 0)
    freed = _leave(s) if s.way else _leave_stalling(s)
    if s.shared.columns > 1 and turned >= 0:
        s.due[turned] = s.shared.result
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
            closes = _closes(s)
            s.row = 0
            s.tile += 1
            s.place = 0 if closes else s.place + 1
            if closes:
                s.fresh = False
            if s.tile == s.commands[0].passes:
                s.tile = 0
                s.fresh = True
                if s.shared.columns == 1:
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
    if starts:    # two passes start further apart than half the time until the release
        place = 0 if s.left[0] == 0 else 1
        s.until_released[place], s.left[place] = s.release + 1, s.parts
    for place in range(2):
        if s.left[place] > 0:
            s.until_released[place] -= 1
            if s.until_released[place] == 0:
                s.taken -= 1
                s.left[place] -= 1
                s.until_released[place] = s.apart
    full = False
    if s.w:
        s.taken += s.tile_row % s.height == 0
        s.tile_row += 1
        if s.tile_row == s.rows:
            s.tile_row = 0
            full = True
    s.filled += s.full - starts
    s.full = full
