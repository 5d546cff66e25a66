"""The unit weights, cycle by cycle; twin of ``weights.py`` of the RTL."""

from numba import njit

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import core, ports, rows
from .record import Record, made, record

UNIT = int(Unit.WEIGHTS)
_READ, _SCALES = ports.NUMBER["w_read"], ports.NUMBER["w_scales_read"]

#: ``tile``, ``height``, ``packed``: rows of a tile, of a segment, of a word of W. A word, and exponents, are asked for.
STATE = record("tile height packed", "asked scales", rows=rows.STATE)


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    return made(STATE, tile=accelerator.core.rows, height=accelerator.core.height, packed=accelerator.packed)


@njit
def ask(m: Record) -> None:
    """What it asks for in this cycle: W has no other reader, so that only writes can be in its way."""
    s = m.units.weights
    free = m.ports.single and rows.free(s.rows, core.w_ready(m.units.core))
    s.asked, s.scales = free and s.rows.left % s.packed == 0, free and s.rows.left % s.height == 0
    if s.asked:
        ports.ask(m.ports, _READ, UNIT, 0)
    if s.scales:
        ports.ask(m.ports, _SCALES, UNIT, 0)


@njit
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q, ready = m.units.weights, m.queues[UNIT], core.w_ready(m.units.core)
    f = q.instruction.fields
    m.units.core.w = s.rows.there and ready
    refused = (s.asked and not ports.granted(m.ports, _READ, UNIT)) or (
        s.scales and not ports.granted(m.ports, _SCALES, UNIT))
    rows.step(s.rows, q, ready, refused, False)
    q.takes = q.begins = q.ready and not s.rows.active
    if q.takes:
        rows.begin(s.rows, f.tiles * f.repeats * s.tile)
