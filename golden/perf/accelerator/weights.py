"""The unit weights, cycle by cycle; twin of ``weights.py`` of the RTL."""

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import core, ports, rows
from .record import Record, made, part, record

UNIT = int(Unit.WEIGHTS)
_READ, _SCALES, _INDEX = (ports.NUMBER[name] for name in ("w_read", "w_scales_read", "w_index_read"))

#: ``tile``, ``height``, ``packed``: rows of a tile, of a segment, of a word of W. A word, exponents, and places of
#: sparse weights are asked for; whether there are such.
STATE = record("tile height packed", "asked scales places sparse", rows=rows.STATE)


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    return made(STATE, tile=accelerator.core.rows, height=accelerator.core.height, packed=accelerator.packed,
                sparse=accelerator.index > 0)


@part
def ask(m: Record) -> None:
    """What it asks for in this cycle: W has no other reader, so that only writes can be in its way."""
    s = m.units.weights
    free = m.ports.single and rows.free(s.rows, core.w_ready(m.units.core))
    s.asked, s.scales = free and s.rows.left % s.packed == 0, free and s.rows.left % s.height == 0
    s.places = free and s.sparse
    if s.places:
        ports.ask(m.ports, _INDEX, UNIT, 0)
    if s.asked:
        ports.ask(m.ports, _READ, UNIT, 0)
    if s.scales:
        ports.ask(m.ports, _SCALES, UNIT, 0)


@part
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q, ready = m.units.weights, m.queues[UNIT], core.w_ready(m.units.core)
    f = q.instruction.fields
    m.units.core.w = s.rows.there and ready
    refused = (s.asked and not ports.granted(m.ports, _READ, UNIT)) or (
        s.scales and not ports.granted(m.ports, _SCALES, UNIT)) or (
        s.places and not ports.granted(m.ports, _INDEX, UNIT))
    rows.step(s.rows, q, ready, refused, False)
    q.takes = q.begins = q.ready and not s.rows.active
    if q.takes:
        rows.begin(s.rows, f.tiles * f.repeats * s.tile)
