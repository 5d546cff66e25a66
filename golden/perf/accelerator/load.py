"""The unit load, cycle by cycle; twin of ``load.py`` of the RTL."""

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import pieces, ports, walk
from .record import Record, made, part, record

UNIT = int(Unit.LOAD)
_V_WRITE, _P_WRITE = ports.NUMBER["v_write"], ports.NUMBER["p_write"]

#: ``port`` is a wire: that by which the beat on the bus is to be written, 0 for none. A beat of P takes ``turns``
#: cycles, of which ``turn`` are over.
STATE = record("port turns turn", walk=walk.STATE, pieces=pieces.STATE)


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    return made(STATE, turns=accelerator.lanes // 2 if accelerator.single else 1, walk=walk.fresh(accelerator),
                pieces=pieces.fresh(accelerator, accelerator.reads))


@part
def ask(m: Record) -> None:
    """What it asks for in this cycle."""
    s = m.units.load
    s.port = pieces.target(s.pieces) if m.reader.loaded else 0
    if s.port:
        bank = pieces.word(s.pieces) & m.banks.count - 1 if s.port == _V_WRITE and m.ports.single else 0
        ports.ask(m.ports, s.port, UNIT, bank)


@part
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q, reader = m.units.load, m.queues[UNIT], m.reader
    f = q.instruction.fields
    ends = moves = False
    if s.port and ports.granted(m.ports, s.port, UNIT):
        moves = True
        if s.port == _V_WRITE:
            s.pieces.second = pieces.straddles(s.pieces)
            moves = not s.pieces.second
        if s.port == _P_WRITE:
            s.turn = (s.turn + 1) % s.turns
            moves = s.turn == 0
    if moves:
        final = s.pieces.ring[s.pieces.head].last
        ends = pieces.move(s.pieces)
        q.done = ends and final
    reader.ready = moves or not reader.loaded
    asks = s.walk.phase == walk.BURST and reader.free and reader.beats == 0 and pieces.room(s.pieces)
    if asks:
        reader.beats, reader.mark = walk.beats(s.walk), True
        q.takes = walk.last(s.walk)
    q.begins = q.ready and s.walk.phase == walk.START
    pieces.step(s.pieces, asks, s.walk, ends)
    walk.step(s.walk, f, f.memory, q.ready, asks)
