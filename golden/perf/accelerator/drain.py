"""The unit drain, cycle by cycle; twin of ``drain.py`` of the RTL."""

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import banks, ports, way_out
from .record import Record, made, part, record

UNIT = int(Unit.DRAIN)
_V_READ, _V_WRITE = ports.NUMBER["v_read"], ports.NUMBER["v_write"]
_BOTH = way_out.SCALE | way_out.BIAS
#: A core with registers is ready in every third cycle until it has its operand, which is read the cycle before.
_PULSE = 2

STATE = record(
    # Rows still to come, operands of the commands.
    "left steps "
    # Of a core with registers: columns whose operands are still to be taken; cycles ago that it was ready, by bit.
    "columns soon",
    # An instruction is under way; an operand is on its way to the core; of two the first is taken; one is done.
    "active there got done")


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    return made(STATE)


@part
def ask(m: Record) -> None:
    """What it asks for in this cycle."""
    s = m.units.drain
    if s.active:
        c = m.units.core.out
        taken = s.there and way_out.v_ready(c)
        more = not taken or (s.steps == _BOTH and not s.got)
        if c.way:
            soon = s.soon & _PULSE != 0 if c.turns == 1 else way_out.asks(c) and more
            wanted = soon and s.steps != 0 and s.columns != 0
        else:
            wanted = way_out.asks(c) and more
        if wanted:
            both = taken and not (c.way and c.turns == 1)    # the second is asked for while the first is taken
            ports.ask(m.ports, _V_READ, UNIT, m.banks.after[banks.OPERANDS] if both else m.banks.next[banks.OPERANDS])
        if way_out.o_valid(c):
            ports.ask(m.ports, _V_WRITE, UNIT, m.banks.next[banks.RESULTS])


@part
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q, c = m.units.drain, m.queues[UNIT], m.units.core.out
    f = q.instruction.fields
    q.done = s.done
    c.offered = s.there
    c.v, c.o = s.there and way_out.v_ready(c), ports.granted(m.ports, _V_WRITE, UNIT)
    last = c.o and s.left == 1
    q.takes = q.begins = q.ready and (not s.active or last)
    s.done = last
    s.there = ports.granted(m.ports, _V_READ, UNIT)
    over = c.v and (s.got or s.steps != _BOTH)
    s.soon = (s.soon << 1 | (way_out.v_ready(c) and not over)) & (2 * _PULSE - 1)
    if c.v:
        s.got = s.steps == _BOTH and not s.got
    if over:
        s.columns -= 1
    if c.o:
        s.left -= 1
    if last:
        s.active = False
    if q.takes:
        s.columns = f.columns
        s.active, s.left = True, f.rows0 * f.rows1 * f.columns
        s.steps = way_out.SCALE * f.scale | way_out.BIAS * f.bias
