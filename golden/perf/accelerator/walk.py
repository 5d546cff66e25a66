"""How a load or a store is divided into bursts, cycle by cycle; twin of ``rtl/accelerator/walk.py``."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hbfp.isa.instructions import FIELDS, Memory, Opcode

from .decode import places

State = NDArray[np.int64]

#: Bytes that no burst may cross.
PAGE = 4096
#: What the walker does.
START, SEGMENT, BURST = range(3)
#: Places of the state: of the accelerator,
(BEAT, LONGEST, RECORD, HEIGHT,
 # and of the instruction: what is done with it, its memory, whether it moves elements, numbers of a run; the loops'
 # offsets in DRAM, places in the memory and counts; beats of the segment that are left, and that are done.
 PHASE, MEMORY, ELEMENTS, RUN, OFFSET, PLACE, COUNT, LEFT, DONE) = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 14, 17, 18)
SIZE = 19
_LOAD, _STORE = places(Opcode.LOAD), places(Opcode.STORE)
#: The fields of both have one order; those of a load have its memory in front.
_SHIFT = _LOAD["offset"] - _STORE["offset"]
assert [field.name for field in FIELDS[Opcode.LOAD][_SHIFT:]] == [field.name for field in FIELDS[Opcode.STORE]]
_MEMORY, _ELEMENTS, _OFFSET, _BASE, _RUN = (_LOAD[name] for name in ("memory", "elements", "offset", "base", "run"))
_COUNT0, _DRAM0, _BUFFER0 = (_LOAD[f"{name}0"] for name in ("count", "dram", "buffer"))
_PER_LOOP = _LOAD["count1"] - _COUNT0
_W = int(Memory.W)


@njit
def beats(s: State) -> int:
    """Of the burst that is offered."""
    offset = s[OFFSET] // s[BEAT] + (s[DONE] if s[ELEMENTS] else 0)
    return min(s[LEFT], s[LONGEST], (PAGE - offset * s[BEAT] % PAGE) // s[BEAT])


@njit
def last(s: State, f: State, shift: int) -> bool:
    """Whether it is the last one of the instruction."""
    if s[LEFT] != beats(s):
        return False
    single = not s[ELEMENTS] and s[MEMORY] != _W
    return (single or s[COUNT] == 1) and s[COUNT + 1] == 1 and s[COUNT + 2] == 1


@njit
def step(s: State, f: State, shift: int, offered: bool, moves: bool) -> None:
    """The end of a cycle.

    The instruction's fields, and by how many they lie lower than those of a load; whether there is an instruction, and
    whether the burst that is offered is taken.
    """
    if s[PHASE] == START:
        if offered:
            s[MEMORY] = 0 if shift else f[_MEMORY]
            s[ELEMENTS], s[RUN] = f[_ELEMENTS - shift], f[_RUN - shift]
            for loop in range(3):
                s[OFFSET + loop], s[PLACE + loop] = f[_OFFSET - shift], f[_BASE - shift]
                s[COUNT + loop] = f[_COUNT0 - shift + loop * _PER_LOOP]
            s[PHASE] = SEGMENT
        return
    if s[PHASE] == SEGMENT:
        s[PHASE], s[DONE], s[LEFT] = BURST, 0, s[COUNT]
        if s[ELEMENTS]:
            s[LEFT] = 2 if s[OFFSET] // 4 % (s[BEAT] // 4) + s[RUN] > s[BEAT] // 4 else 1
        elif s[MEMORY] == _W:
            s[LEFT] = s[RECORD]
        return
    if not moves:
        return
    burst, records = beats(s), s[MEMORY] == _W
    single = not s[ELEMENTS] and not records
    loop = 2
    if s[LEFT] != burst or (not single and s[COUNT] != 1):
        loop = 0
        offset = f[_DRAM0 - shift] if s[ELEMENTS] else burst * s[BEAT]
        place = f[_BUFFER0 - shift] if s[ELEMENTS] else s[HEIGHT] if records else burst
    else:
        if s[COUNT + 1] != 1:
            loop = 1
        offset = f[_DRAM0 - shift + loop * _PER_LOOP]
        place = f[_BUFFER0 - shift + loop * _PER_LOOP]
    offset, place = s[OFFSET + loop] + offset, s[PLACE + loop] + place
    if s[LEFT] != burst:
        s[LEFT] -= burst
        s[DONE] = 0 if single else s[DONE] + burst
        if not s[ELEMENTS]:
            s[OFFSET] = offset
        if single:
            s[PLACE] = place
        return
    s[PHASE] = START if last(s, f, shift) else SEGMENT
    for inner in range(loop + 1):
        s[OFFSET + inner], s[PLACE + inner] = offset, place
        if inner < loop:
            s[COUNT + inner] = f[_COUNT0 - shift + inner * _PER_LOOP]
    s[COUNT + loop] -= 1
