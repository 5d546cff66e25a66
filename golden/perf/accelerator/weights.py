"""The unit weights, cycle by cycle; twin of ``weights.py`` of the RTL."""

from numba import njit

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import core
from .record import Record, made, record

UNIT = int(Unit.WEIGHTS)

STATE = record(
    # Rows of the core, and those that are still to be issued.
    "rows left",
    # An instruction is under way; a row is on its way to the core, and is the instruction's last; one is done.
    "active there final done")


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    return made(STATE, rows=accelerator.core.rows)


@njit
def ask(m: Record) -> None:
    """It asks for nothing: W has no other reader."""


@njit
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q, ready = m.units.weights, m.queues[UNIT], core.w_ready(m.units.core)
    f = q.instruction.fields
    q.done = s.done
    given = s.there and ready
    m.units.core.w = given
    s.done = given and s.final
    issue = s.active and (not s.there or ready)
    last = issue and s.left == 1
    q.takes = q.begins = q.ready and (not s.active or last)
    if issue:
        s.there, s.final = True, last
        s.left -= 1
    elif given:
        s.there = False
    if last:
        s.active = False
    if q.takes:
        s.active, s.left = True, f.tiles * f.repeats * s.rows
