"""Fetch, reads and writes of the bus, cycle by cycle; twins of the RTL's ``fetch.py``, ``reader.py``, ``writer.py``."""

import numpy as np

from hbfp.isa.instructions import BYTES
from hbfp.system import Accelerator

from . import dram
from .record import Record, made, part, record

#: Instructions that are held ahead, and those of the longest burst; beats of writes that wait.
AHEAD, CHUNK, BEATS = 16, 8, 4
_RING = 32

FETCH = record(
    # Beats of a word of its memory and instructions of one, beats of the longest burst.
    "parts words longest "
    # The next beat, those to ask for, free ones, beats of the word that comes, words behind the one that is offered,
    # the half of it that is next.
    "address left free part behind half",
    # It has begun; there is a word. Wires: a beat has come, an instruction is taken.
    "began valid came taken")

_ADDRESSES = (
    # Bursts under way at most; beats of the address that is offered, 0 for none; bursts under way, and the mark of each
    # (of reads: a load's, of writes: it ends an instruction), the oldest lowest; wire: beats of the burst that is
    # taken, 0 for none.
    "most offered under_way marks beats ",
    # Wires: a burst may be taken; the mark of that which is.
    "free mark ")
#: Wires of reads: the beat on the bus is a load's, and is taken.
READS = record(_ADDRESSES[0], _ADDRESSES[1] + "loaded ready")
WRITES = record(
    # Lengths behind the head of their queue and its place in their ring; beats behind their head; beats held, beats of
    # the burst sent.
    _ADDRESSES[0] + "lengths_behind length_head beats_behind held sent",
    # Whether the queues have heads; wire: a beat comes from the store.
    _ADDRESSES[1] + "lengths_valid beats_valid comes", lengths=(np.int64, (_RING,)))


def fresh_fetch(accelerator: Accelerator, instructions: int) -> Record:
    """The state at reset, for a program at an address of whole pages."""
    beat = accelerator.beat
    parts, words = max(BYTES // beat, 1), max(beat // BYTES, 1)
    return made(FETCH, parts=parts, words=words, free=AHEAD // words * parts,
                longest=min(CHUNK * BYTES // beat, 1 << accelerator.burst.bit_length() - 1),
                left=instructions * parts if words == 1 else (instructions + 1) // 2)


@part
def start(s: Record, place: int) -> None:
    """Let fetch begin at an instruction that is not the first."""
    skipped = place // s.words * s.parts
    s.address, s.left, s.half = skipped, s.left - skipped, place % s.words


@part
def begin(m: Record) -> None:
    """The begin of a cycle: what is on the bus, and the burst that fetch asks for; it comes before load."""
    reader, writer, fetch, d = m.reader, m.writer, m.fetch, m.dram
    reader.free, writer.free = _free(reader, d.ar_ready), _free(writer, d.aw_ready)
    reader.beats, reader.mark, writer.beats, writer.mark = 0, False, 0, False
    reader.loaded = d.r_valid and reader.marks & 1 == 1
    reader.ready, writer.comes = True, False
    fetch.came, fetch.taken = d.r_valid and not reader.loaded, False
    if reader.free and fetch.began and fetch.left != 0 and fetch.free >= fetch.longest:
        reader.beats = min(fetch.left, fetch.longest - fetch.address % fetch.longest)


@part
def rest(m: Record) -> None:
    """The begin of a cycle in which no program runs: what is under way is awaited."""
    m.reader.beats, m.reader.ready, m.writer.beats, m.writer.comes = 0, True, 0, False


@part
def _free(s, ready):
    """Whether a burst may be taken, if the address channel is ``ready``."""
    return (s.offered == 0 or ready) and s.under_way != s.most


@part
def room(s: Record, comes: bool) -> bool:
    """Whether a store may read V for another beat; ``comes``: one is on its way."""
    return s.held + comes < BEATS


@part
def end(m: Record, now: int) -> None:
    """The end of a cycle, and of DRAM's, too."""
    reader, writer, d = m.reader, m.writer, m.dram
    over, written = d.r_valid and reader.ready and d.r_last, d.b_valid
    w_valid = writer.lengths_valid and writer.beats_valid
    dram.end(d, now, reader.offered, writer.offered, w_valid, reader.ready, True)
    _data(writer, w_valid and d.w_ready)
    _address(writer, d.aw_ready, written)
    _address(reader, d.ar_ready, over)


@part
def _address(s, ready, pop):
    """Addresses; ``pop``: the oldest burst is over."""
    if ready:
        s.offered = 0
    s.under_way -= pop
    if pop:
        s.marks >>= 1
    if s.beats:
        s.offered = s.beats
        s.marks |= s.mark << s.under_way
        s.under_way += 1


@part
def _data(s, goes):
    """Beats of writes; ``goes``: one does."""
    ends = goes and s.sent == s.lengths[s.length_head] - 1
    if s.beats:
        s.lengths[(s.length_head + s.lengths_valid + s.lengths_behind) % _RING] = s.beats
    read = s.lengths_behind > 0 and (ends or not s.lengths_valid)
    s.lengths_behind += (s.beats > 0) - read
    s.lengths_valid = read or (s.lengths_valid and not ends)
    if ends:
        s.length_head = (s.length_head + 1) % _RING
    read = s.beats_behind > 0 and (goes or not s.beats_valid)
    s.beats_behind += s.comes - read
    s.beats_valid = read or (s.beats_valid and not goes)
    s.held += s.comes - goes
    if goes:
        s.sent = 0 if ends else s.sent + 1


@part
def fetch_step(s: Record, asked: int) -> None:
    """The end of a cycle of fetch; ``asked``: beats of a burst."""
    pop = s.taken and s.half == s.words - 1
    read = s.behind > 0 and (pop or not s.valid)
    whole = s.came and s.part == s.parts - 1
    if s.taken and s.words == 2:
        s.half ^= 1
    if s.came:
        s.part = 0 if whole else s.part + 1
    s.address += asked
    s.left -= asked
    s.free += read * s.parts - asked
    s.behind += whole - read
    s.valid = read or (s.valid and not pop)
    s.began = True
