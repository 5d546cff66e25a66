"""The DRAM of the simulated Verilog once more, for the cycle model: when beats move, and not what is in them.

The rule stands at the head of ``cosim/accelerator/dram.h``. Addresses do not matter here, as nothing is refused.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

State = NDArray[np.int64]

#: Bursts of reads and of writes whose address waits at most, beats of writes that wait.
READS, WRITES, WRITE_BEATS = 16, 16, 32
#: Places of the state. Rings follow from RING on: of reads (beats left, cycle of the first), of writes (beats), of
#: responses (cycle).
(LATENCY, BANDWIDTH, BEAT, CREDIT, TURN, R_VALID, R_LAST, B_VALID, AR_READY, AW_READY, W_READY, BUFFERED,
 READ_HEAD, READ_COUNT, WRITE_HEAD, WRITE_COUNT, ANSWER_HEAD, ANSWER_COUNT) = range(18)
_RING = 32
_READ_BEATS, _READ_CYCLE, _WRITE_BEATS_LEFT, _ANSWERS = (18 + _RING * n for n in range(4))
#: Responses that wait are at most the writes that their master has open.
SIZE = 18 + _RING * 4


def fresh(latency: int, bandwidth: int, beat: int) -> State:
    """The state after a while of doing nothing."""
    state = np.zeros(SIZE, np.int64)
    state[[LATENCY, BANDWIDTH, BEAT, CREDIT]] = latency, bandwidth, beat, bandwidth + beat - 1
    return state


@njit
def begin(s: State, now: int) -> None:
    """The begin of a cycle: at most one beat each way, and what the channels show."""
    beat = s[BEAT]
    s[CREDIT] = min(s[CREDIT] + s[BANDWIDTH], s[BANDWIDTH] + beat - 1)
    head = s[READ_HEAD]
    read = s[R_VALID] == 0 and s[READ_COUNT] > 0 and s[_READ_CYCLE + head] <= now
    write = s[WRITE_COUNT] > 0 and s[BUFFERED] > 0
    if not write:
        s[TURN] = 0
    if read and write and s[CREDIT] < 2 * beat:
        if s[TURN]:
            read = False
        else:
            write = False
        if s[CREDIT] >= beat:
            s[TURN] ^= 1
    if read and s[CREDIT] >= beat:
        s[CREDIT] -= beat
        s[R_VALID] = 1
        s[_READ_BEATS + head] -= 1
        s[R_LAST] = s[_READ_BEATS + head] == 0
        if s[R_LAST]:
            s[READ_HEAD] = (head + 1) % _RING
            s[READ_COUNT] -= 1
    if write and s[CREDIT] >= beat:
        s[CREDIT] -= beat
        s[BUFFERED] -= 1
        place = _WRITE_BEATS_LEFT + s[WRITE_HEAD]
        s[place] -= 1
        if s[place] == 0:
            s[_ANSWERS + (s[ANSWER_HEAD] + s[ANSWER_COUNT]) % _RING] = now + s[LATENCY]
            s[ANSWER_COUNT] += 1
            s[WRITE_HEAD] = (s[WRITE_HEAD] + 1) % _RING
            s[WRITE_COUNT] -= 1
    if s[B_VALID] == 0 and s[ANSWER_COUNT] > 0 and s[_ANSWERS + s[ANSWER_HEAD]] <= now:
        s[B_VALID] = 1
        s[ANSWER_HEAD] = (s[ANSWER_HEAD] + 1) % _RING
        s[ANSWER_COUNT] -= 1
    s[AR_READY] = s[READ_COUNT] < READS
    s[AW_READY] = s[WRITE_COUNT] < WRITES
    s[W_READY] = s[BUFFERED] < WRITE_BEATS


@njit
def end(s: State, now: int, ar_beats: int, aw_beats: int, w_valid: bool, r_ready: bool, b_ready: bool) -> None:
    """The end of a cycle: beats of the bursts whose addresses are offered, 0 for none; and what is taken."""
    if ar_beats and s[AR_READY]:
        place = (s[READ_HEAD] + s[READ_COUNT]) % _RING
        s[_READ_BEATS + place] = ar_beats
        s[_READ_CYCLE + place] = now + s[LATENCY]
        s[READ_COUNT] += 1
    if aw_beats and s[AW_READY]:
        s[_WRITE_BEATS_LEFT + (s[WRITE_HEAD] + s[WRITE_COUNT]) % _RING] = aw_beats
        s[WRITE_COUNT] += 1
    if w_valid and s[W_READY]:
        s[BUFFERED] += 1
    if s[R_VALID] and r_ready:
        s[R_VALID] = 0
    if s[B_VALID] and b_ready:
        s[B_VALID] = 0
