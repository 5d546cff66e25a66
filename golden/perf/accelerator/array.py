"""The units weights, multiply and drain, cycle by cycle: the registers of the RTL that decide when rows move."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hbfp.isa.instructions import Opcode

from . import core
from .decode import places

State = NDArray[np.int64]
_W, _M, _D = (places(opcode) for opcode in (Opcode.WEIGHTS, Opcode.MULTIPLY, Opcode.DRAIN))
_W_TILES, _W_REPEATS = _W["tiles"], _W["repeats"]
_FIRST, _TILES, _COLUMNS, _SCALE, _BIAS = (_M[name] for name in ("first", "tiles", "columns", "scale", "bias"))
_ROWS0, _ROWS1, _PASSES0, _PASSES1, _PASSES2 = (_M[name] for name in (
    "rows0", "rows1", "passes0", "passes1", "passes2"))
_D_SCALE, _D_BIAS, _D_COLUMNS, _D_ROWS0, _D_ROWS1 = (_D[name] for name in (
    "scale", "bias", "columns", "rows0", "rows1"))

#: Places of the state of weights and multiply: whether an instruction is under way, rows still to be issued (of this
#: column tile), whether a row is on its way to the core and whether it is the instruction's last, and ``done``.
ACTIVE, LEFT, THERE, FINAL, DONE = range(5)
#: Further ones of multiply: column tiles after this one, rows of each, and the command that is offered.
MORE, EACH, OFFERED, COMMAND_ROWS, COMMAND_TILES, COMMAND_STEPS = range(5, 11)
#: Those of drain: rows still to come, operands of its commands, whether one is on its way, whether of two the first is
#: taken.
STEPS, GOT = 5, 6
SIZE = 11


@njit
def weights(s: State, c: State, offered: bool, fields: State) -> tuple[bool, bool]:
    """A cycle of weights: whether the core is given a row, and whether an instruction that is ``offered`` is taken."""
    given = s[THERE] == 1 and core.w_ready(c)
    s[DONE] = given and s[FINAL] == 1
    issue = s[ACTIVE] == 1 and (s[THERE] == 0 or core.w_ready(c))
    last = issue and s[LEFT] == 1
    taken = offered and (s[ACTIVE] == 0 or last)
    if issue:
        s[THERE], s[FINAL] = 1, last
        s[LEFT] -= 1
    elif given:
        s[THERE] = 0
    if last:
        s[ACTIVE] = 0
    if taken:
        s[ACTIVE], s[LEFT] = 1, fields[_W_TILES] * fields[_W_REPEATS] * c[core.ROWS]
    return given, taken


@njit
def multiply(s: State, c: State, offered: bool, fields: State) -> tuple[bool, int, bool]:
    """A cycle of multiply: rows of the command that the core takes, whether it is given a row, and as for weights."""
    x_ready, command_ready = core.x_ready(c), core.command_ready(c)
    given = s[THERE] == 1 and x_ready
    commanded = s[COMMAND_ROWS] if s[OFFERED] == 1 and command_ready else 0
    free = s[OFFERED] == 0 or command_ready
    again = s[LEFT] == 1 and s[MORE] > 0
    s[DONE] = given and s[FINAL] == 1
    issue = s[ACTIVE] == 1 and (s[THERE] == 0 or x_ready) and (free or not again)
    last = issue and s[LEFT] == 1 and s[MORE] == 0
    taken = offered and (s[ACTIVE] == 0 or last) and free
    if command_ready:
        s[OFFERED] = 0
    if issue:
        s[THERE], s[FINAL] = 1, last
        s[LEFT] -= 1
        if again:
            s[OFFERED] = 1
            s[LEFT] = s[EACH]
            s[MORE] -= 1
    elif x_ready:
        s[THERE] = 0
    if last:
        s[ACTIVE] = 0
    return given, commanded, taken


@njit
def begin_multiply(s: State, fields: State) -> None:
    """Take an instruction; after the core has taken what it was offered."""
    rows = fields[_ROWS0] * fields[_ROWS1]
    s[ACTIVE], s[MORE] = 1, fields[_COLUMNS] - 1
    s[LEFT] = s[EACH] = rows * fields[_PASSES0] * fields[_PASSES1] * fields[_PASSES2]
    if fields[_FIRST]:
        s[OFFERED], s[COMMAND_ROWS], s[COMMAND_TILES] = 1, rows, fields[_TILES]
        s[COMMAND_STEPS] = core.SCALE * fields[_SCALE] | core.BIAS * fields[_BIAS]


@njit
def drain_reads(s: State, c: State) -> bool:
    """Whether drain asks for an operand; it comes first at V."""
    both = s[STEPS] == core.SCALE | core.BIAS
    return s[ACTIVE] == 1 and core.v_ready(c) and (s[THERE] == 0 or (both and s[GOT] == 0))


@njit
def drain_writes(s: State, c: State) -> bool:
    """Whether drain asks for a row to be written."""
    return s[ACTIVE] == 1 and core.o_valid(c)


@njit
def drain(s: State, c: State, written: bool, offered: bool, fields: State) -> tuple[bool, bool]:
    """A cycle of drain: whether an operand is given to the core, and whether an instruction is taken."""
    reads = drain_reads(s, c)
    given = s[THERE] == 1 and core.v_ready(c)
    last = written and s[LEFT] == 1
    taken = offered and (s[ACTIVE] == 0 or last)
    s[DONE] = last
    s[THERE] = reads
    if given:
        s[GOT] = s[STEPS] == core.SCALE | core.BIAS and s[GOT] == 0
    if written:
        s[LEFT] -= 1
    if last:
        s[ACTIVE] = 0
    if taken:
        s[ACTIVE], s[LEFT] = 1, fields[_D_ROWS0] * fields[_D_ROWS1] * fields[_D_COLUMNS]
        s[STEPS] = core.SCALE * fields[_D_SCALE] | core.BIAS * fields[_D_BIAS]
    return given, taken
