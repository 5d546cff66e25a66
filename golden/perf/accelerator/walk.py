"""How a load or a store is divided into bursts, cycle by cycle; twin of ``rtl/accelerator/walk.py``."""

import numpy as np

from hbfp.isa.instructions import Memory
from hbfp.system import Accelerator

from .record import Record, made, part, record

#: Bytes that no burst may cross.
PAGE = 4096
#: What the walker does.
START, SEGMENT, BURST = range(3)
_W = int(Memory.W)
_LOOPS = (np.int64, (3,))

STATE = record(
    # Of the accelerator: bytes of a beat, beats of the longest burst and of a record, words of W that it fills.
    "beat longest record height "
    # What is done with the instruction, its memory, numbers of a run; beats of the segment that are left, and done.
    "phase memory run left done",
    "elements "
    # Segments are checked in two cycles, of which one is over.
    "registered checked",
    # The loops' offsets in DRAM, places in the memory, and counts.
    offset=_LOOPS, place=_LOOPS, count=_LOOPS)


def fresh(accelerator: Accelerator) -> Record:
    """The state at reset."""
    return made(STATE, beat=accelerator.beat, longest=accelerator.burst, record=accelerator.record_beats,
                height=accelerator.core.height, registered=accelerator.registered)


@part
def beats(s: Record) -> int:
    """Of the burst that is offered."""
    offset = s.offset[0] // s.beat + (s.done if s.elements else 0)
    return min(s.left, s.longest, (PAGE - offset * s.beat % PAGE) // s.beat)


@part
def last(s: Record) -> bool:
    """Whether it is the last one of the instruction."""
    if s.left != beats(s):
        return False
    single = not s.elements and s.memory != _W
    return (single or s.count[0] == 1) and s.count[1] == 1 and s.count[2] == 1


@part
def step(s: Record, f: Record, memory: int, offered: bool, moves: bool) -> None:
    """The end of a cycle.

    The instruction's fields and memory; whether there is an instruction, and whether the burst that is offered is
    taken.
    """
    if s.phase == START:
        if offered:
            s.memory, s.elements, s.run = memory, f.elements != 0, f.run
            s.count[0], s.count[1], s.count[2] = f.count0, f.count1, f.count2
            for loop in range(3):
                s.offset[loop], s.place[loop] = f.offset, f.base
            s.phase = SEGMENT
        return
    if s.phase == SEGMENT:
        s.checked = s.registered and not s.checked
        if s.checked:
            return
        s.phase, s.done, s.left = BURST, 0, s.count[0]
        if s.elements:
            s.left = 2 if s.offset[0] // 4 % (s.beat // 4) + s.run > s.beat // 4 else 1
        elif s.memory == _W:
            s.left = s.record
        return
    if moves:
        _move(s, f)


@part
def _move(s, f):
    """To the next burst, in the next turn of a loop if this one ends its segment."""
    burst, records = beats(s), s.memory == _W
    single, within = not s.elements and not records, s.left != burst
    loop = 2
    if within or (not single and s.count[0] != 1):
        loop = 0
        offset = f.dram0 if s.elements else burst * s.beat
        place = f.buffer0 if s.elements else s.height if records else burst
    elif s.count[1] != 1:
        loop, offset, place = 1, f.dram1, f.buffer1
    else:
        offset, place = f.dram2, f.buffer2
    offset, place = s.offset[loop] + offset, s.place[loop] + place
    if within:
        s.left -= burst
        s.done = 0 if single else s.done + burst
        if not s.elements:
            s.offset[0] = offset
        if single:
            s.place[0] = place
        return
    s.phase = START if last(s) else SEGMENT
    for inner in range(loop + 1):
        s.offset[inner], s.place[inner] = offset, place
    if loop > 0:
        s.count[0] = f.count0
    if loop > 1:
        s.count[1] = f.count1
    s.count[loop] -= 1
