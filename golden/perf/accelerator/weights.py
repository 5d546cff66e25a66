"""The unit weights, cycle by cycle; twin of ``weights.py`` of the RTL."""

from numba import njit

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import core, rows
from .record import Record, made, record

UNIT = int(Unit.WEIGHTS)

#: ``tile``: rows of a tile, which follow from the core.
STATE = record("tile", rows=rows.STATE)


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    return made(STATE, tile=accelerator.core.rows)


@njit
def ask(m: Record) -> None:
    """It asks for nothing: W has no other reader."""


@njit
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q, ready = m.units.weights, m.queues[UNIT], core.w_ready(m.units.core)
    f = q.instruction.fields
    m.units.core.w = s.rows.there and ready
    rows.step(s.rows, q, ready, False, False)
    q.takes = q.begins = q.ready and not s.rows.active
    if q.takes:
        rows.begin(s.rows, f.tiles * f.repeats * s.tile)
