"""The unit multiply, cycle by cycle; twin of ``multiply.py`` of the RTL."""

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import banks, core, ports, rows, way_out
from .record import Record, made, part, record

UNIT = int(Unit.MULTIPLY)
_X_READ = ports.NUMBER["x_read"]

STATE = record(
    # Rows of each column tile, column tiles after this one; a command is offered. A row is asked for,
    # and was issued.
    "each more", "offered asked issued", command=way_out.COMMAND, rows=rows.STATE)    # rows of this column tile


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    return made(STATE)


@part
def ask(m: Record) -> None:
    """What it asks for in this cycle: X has no other reader, so that only a write can be in its way."""
    s, c = m.units.multiply, m.units.core
    s.asked = m.ports.single and not _waits(s, c) and rows.free(s.rows, core.x_ready(c)) and (
        m.banks.next[banks.MULTIPLY] != banks.OUTSIDE)
    if s.asked:
        ports.ask(m.ports, _X_READ, UNIT, m.banks.next[banks.MULTIPLY])


@part
def _waits(s, c):
    """Whether the next row begins a command that cannot be offered yet."""
    return s.rows.left == 1 and s.more > 0 and s.offered and not core.command_ready(c)


@part
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
    refused = s.asked and not ports.granted(m.ports, _X_READ, UNIT)
    issue = rows.step(s.rows, q, x_ready, (again and not free) or refused, s.more > 0)
    s.issued = issue
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
            s.command.sparse = f.sparse
            s.command.steps = way_out.SCALE * f.scale | way_out.BIAS * f.bias
