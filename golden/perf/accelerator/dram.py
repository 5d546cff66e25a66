"""The DRAM of the simulated Verilog once more, for the cycle model: when beats move, and not what is in them.

The rule stands at the head of ``cosim/accelerator/dram.h``. Addresses do not matter here, as nothing is refused.
"""

import numpy as np

from .record import Record, made, part, record

#: Bursts of reads and of writes whose address waits at most, beats of writes that wait.
READS, WRITES, WRITE_BEATS = 16, 16, 32
#: Responses that wait are at most the writes that their master has open.
_RING = 32
_ROOM = (np.int64, (_RING,))

STATE = record(
    # Its latency and bytes a cycle, bytes of a beat; bytes that may move.
    "latency bandwidth beat credit "
    # Beats of writes that wait; heads of the rings and how many each has.
    "buffered read_head read_count write_head write_count answer_head answer_count",
    # Whether a write comes first, and what the channels show.
    "turn r_valid r_last b_valid ar_ready aw_ready w_ready",
    # Rings: of reads, beats left and cycle of the first; of writes, beats; of responses, cycle.
    read_beats=_ROOM, read_cycle=_ROOM, write_beats=_ROOM, answers=_ROOM)


def fresh(latency: int, bandwidth: int, beat: int) -> Record:
    """The state after a while of doing nothing."""
    return made(STATE, latency=latency, bandwidth=bandwidth, beat=beat, credit=bandwidth + beat - 1)


@part
def begin(s: Record, now: int) -> None:
    """The begin of a cycle: at most one beat each way, and what the channels show."""
    s.credit = min(s.credit + s.bandwidth, s.bandwidth + s.beat - 1)
    read = not s.r_valid and s.read_count > 0 and s.read_cycle[s.read_head] <= now
    write = s.write_count > 0 and s.buffered > 0
    if not write:
        s.turn = False
    if read and write and s.credit < 2 * s.beat:
        if s.turn:
            read = False
        else:
            write = False
        if s.credit >= s.beat:
            s.turn = not s.turn
    if read and s.credit >= s.beat:
        s.credit -= s.beat
        s.r_valid = True
        s.read_beats[s.read_head] -= 1
        s.r_last = s.read_beats[s.read_head] == 0
        if s.r_last:
            s.read_head = (s.read_head + 1) % _RING
            s.read_count -= 1
    if write and s.credit >= s.beat:
        s.credit -= s.beat
        s.buffered -= 1
        s.write_beats[s.write_head] -= 1
        if s.write_beats[s.write_head] == 0:
            s.answers[(s.answer_head + s.answer_count) % _RING] = now + s.latency
            s.answer_count += 1
            s.write_head = (s.write_head + 1) % _RING
            s.write_count -= 1
    if not s.b_valid and s.answer_count > 0 and s.answers[s.answer_head] <= now:
        s.b_valid = True
        s.answer_head = (s.answer_head + 1) % _RING
        s.answer_count -= 1
    s.ar_ready = s.read_count < READS
    s.aw_ready = s.write_count < WRITES
    s.w_ready = s.buffered < WRITE_BEATS


@part
def end(s: Record, now: int, ar_beats: int, aw_beats: int, w_valid: bool, r_ready: bool, b_ready: bool) -> None:
    """The end of a cycle: beats of the bursts whose addresses are offered, 0 for none; and what is taken."""
    if ar_beats and s.ar_ready:
        place = (s.read_head + s.read_count) % _RING
        s.read_beats[place] = ar_beats
        s.read_cycle[place] = now + s.latency
        s.read_count += 1
    if aw_beats and s.aw_ready:
        s.write_beats[(s.write_head + s.write_count) % _RING] = aw_beats
        s.write_count += 1
    if w_valid and s.w_ready:
        s.buffered += 1
    if r_ready:
        s.r_valid = False
    if b_ready:
        s.b_valid = False
