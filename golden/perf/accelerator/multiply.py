"""The unit multiply, cycle by cycle; twin of ``multiply.py`` of the RTL."""

from numba import njit

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import core, rows, way_out
from .record import Record, made, record

UNIT = int(Unit.MULTIPLY)

STATE = record(
    # Rows of each column tile, column tiles after this one; a command is offered.
    "each more", "offered", command=way_out.COMMAND, rows=rows.STATE)    # rows of this column tile


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
    c.x = s.rows.there and x_ready
    c.commanded = s.offered and command_ready
    if c.commanded:
        c.command = s.command
    free = not s.offered or command_ready
    again = s.rows.left == 1 and s.more > 0
    issue = rows.step(s.rows, q, x_ready, again and not free, s.more > 0)
    q.takes = q.begins = q.ready and not s.rows.active and free
    if command_ready:
        s.offered = False
    if issue and again:
        s.offered = True
        s.rows.left = s.each
        s.more -= 1
    if q.takes:
        height = f.rows0 * f.rows1
        s.each, s.more = height * f.passes0 * f.passes1 * f.passes2 * (1 + f.wide_x), f.columns - 1
        rows.begin(s.rows, s.each)
        if f.first:
            s.offered, s.command.rows, s.command.passes, s.command.wide_x = True, height, f.tiles, f.wide_x
            s.command.steps = way_out.SCALE * f.scale | way_out.BIAS * f.bias
