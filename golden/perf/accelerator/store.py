"""The unit store, cycle by cycle; twin of ``store.py`` of the RTL."""

from hbfp.isa.instructions import Memory, Unit
from hbfp.system import Accelerator

from . import bus, pieces, ports, walk
from .record import Record, made, part, record

UNIT = int(Unit.STORE)
_V, _V_READ = int(Memory.V), ports.NUMBER["v_read"]
#: Pieces that it keeps until V is read.
_PIECES = 4

#: ``out``: a word of V goes out.
STATE = record("", "out", walk=walk.STATE, pieces=pieces.STATE)


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    return made(STATE, walk=walk.fresh(accelerator), pieces=pieces.fresh(accelerator, _PIECES))


@part
def ask(m: Record) -> None:
    """What it asks for in this cycle."""
    s = m.units.store
    if s.pieces.valid and bus.room(m.writer, s.out):
        ports.ask(m.ports, _V_READ, UNIT, pieces.source(s.pieces) & m.banks.count - 1 if m.ports.single else 0)


@part
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q, writer = m.units.store, m.queues[UNIT], m.writer
    f = q.instruction.fields
    q.done = m.dram.b_valid and writer.marks & 1 == 1
    writer.comes = s.out
    s.out = ports.granted(m.ports, _V_READ, UNIT)
    asks = s.walk.phase == walk.BURST and writer.free and pieces.room(s.pieces)
    if asks:
        writer.beats, writer.mark = walk.beats(s.walk), walk.last(s.walk)
        q.takes = writer.mark
    q.begins = q.ready and s.walk.phase == walk.START
    pieces.step(s.pieces, asks, s.walk, s.out and pieces.move(s.pieces))
    walk.step(s.walk, f, _V, q.ready, asks)
