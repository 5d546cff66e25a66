"""The unit multiply, cycle by cycle; twin of ``multiply.py`` of the RTL."""

from numba import njit

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import core
from .record import Record, made, record

UNIT = int(Unit.MULTIPLY)

STATE = record(
    # Rows still to be issued of this column tile, rows of each, column tiles after this one.
    "left each more",
    # An instruction is under way; a row is on its way to the core, and is the instruction's last; one is done; a
    # command is offered.
    "active there final done offered", command=core.COMMAND)


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    return made(STATE)


@njit
def ask(m: Record) -> None:
    """It asks for nothing: X has no other reader."""


@njit
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q, c = m.units.multiply, m.queues[UNIT], m.units.core
    f = q.instruction.fields
    x_ready, command_ready = core.x_ready(c), core.command_ready(c)
    q.done = s.done
    c.x = s.there and x_ready
    c.commanded = s.offered and command_ready
    if c.commanded:
        c.command = s.command
    free = not s.offered or command_ready
    again = s.left == 1 and s.more > 0
    s.done = c.x and s.final
    issue = s.active and (not s.there or x_ready) and (free or not again)
    last = issue and s.left == 1 and s.more == 0
    q.takes = q.begins = q.ready and (not s.active or last) and free
    if command_ready:
        s.offered = False
    if issue:
        s.there, s.final = True, last
        s.left -= 1
        if again:
            s.offered = True
            s.left = s.each
            s.more -= 1
    elif x_ready:
        s.there = False
    if last:
        s.active = False
    if q.takes:
        rows = f.rows0 * f.rows1
        s.active, s.more = True, f.columns - 1
        s.left = s.each = rows * f.passes0 * f.passes1 * f.passes2
        if f.first:
            s.offered, s.command.rows, s.command.passes = True, rows, f.tiles
            s.command.steps = core.SCALE * f.scale | core.BIAS * f.bias
