"""Loads and stores behind their bursts, cycle by cycle: pieces that wait, beats into memories and out of V."""

from hbfp.isa.instructions import Memory
from hbfp.system import Accelerator

from . import ports, walk
from .record import Record, made, part, record

#: What comes of a burst: its memory and place there, the lane, run and beat of the segment that it begins with, beats.
_PIECE = record("memory place lane run index beats", "elements last")
_RING = 32
_W = int(Memory.W)
#: Port of each memory that a load writes to; that of the exponents of W.
_PORT = tuple(ports.NUMBER[f"{memory.name.lower()}_write"] for memory in Memory)
_SCALES = ports.NUMBER["w_scales"]

STATE = record(
    # Lanes, the beat of a record that has exponents (-1: none has), pieces that there is room for; those in the memory
    # behind the head, the head's place in the ring, its beat that is next.
    "lanes scales depth behind head beat",
    # Whether there is a head; a run has its second word to come.
    "valid second", ring=(_PIECE, (_RING,)))


def fresh(accelerator: Accelerator, depth: int) -> Record:
    """The state at reset."""
    scales = accelerator.record_beats - 1 if accelerator.exponent else -1
    return made(STATE, lanes=accelerator.lanes, scales=scales, depth=depth)


@part
def room(s: Record) -> bool:
    """Whether another piece has room."""
    return s.behind + s.valid != s.depth


@part
def step(s: Record, push: bool, w: Record, pop: bool) -> None:
    """The end of a cycle: whether the burst that the walker offers becomes a piece, and whether the head goes."""
    if push:
        piece = s.ring[(s.head + s.valid + s.behind) % _RING]
        piece.memory, piece.elements, piece.place = w.memory, w.elements, w.place[0]
        piece.lane = w.offset[0] // 4 % s.lanes
        piece.run, piece.index, piece.beats = w.run, w.done, walk.beats(w)
        piece.last = walk.last(w)
    read = s.behind > 0 and (pop or not s.valid)
    s.behind += push - read
    s.valid = read or (s.valid and not pop)
    if pop:
        s.head = (s.head + 1) % _RING


@part
def straddles(s: Record) -> bool:
    """Whether the beat that is next for V goes on in the next word, after this one."""
    piece = s.ring[s.head]
    if not piece.elements or s.second:
        return False
    into, space = piece.place % s.lanes, s.lanes - piece.lane
    if (piece.index + s.beat) % 2 == 1:
        first, end = into + space, into + piece.run
    else:
        first, end = into, into + min(piece.run, space)
    return first < s.lanes and end > s.lanes


@part
def word(s: Record) -> int:
    """The word of V that a load's next beat goes to."""
    piece = s.ring[s.head]
    if not piece.elements:
        return piece.place + s.beat
    follows = s.lanes - piece.lane if (piece.index + s.beat) % 2 == 1 else 0
    return piece.place // s.lanes + (s.second or piece.place % s.lanes + follows >= s.lanes)


@part
def source(s: Record) -> int:
    """The word of V that a store's next beat comes from."""
    piece = s.ring[s.head]
    return piece.place + (0 if piece.elements else s.beat)


@part
def target(s: Record) -> int:
    """The port by which a load's beat is written, if there is one; 0 for none."""
    if not s.valid:
        return 0
    piece = s.ring[s.head]
    if piece.memory == _W and piece.index + s.beat == s.scales:
        return _SCALES
    return _PORT[piece.memory]


@part
def move(s: Record) -> bool:
    """A beat of the head has moved; whether it was the piece's last."""
    s.beat += 1
    if s.beat == s.ring[s.head].beats:
        s.beat = 0
        return True
    return False
