"""Fetch, and the bus's reads and writes, cycle by cycle; twins of ``fetch.py``, ``reader.py`` and ``writer.py``."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hbfp.isa.instructions import BYTES
from hbfp.system import Accelerator

from . import dram

State = NDArray[np.int64]

#: Instructions that are held ahead, and those of the longest burst; beats of writes that wait.
AHEAD, CHUNK, BEATS = 16, 8, 4

#: Places of the state of fetch: beats of a word of its memory and instructions of one; beats of the longest burst; and
#: whether it has begun, the next beat, those to ask for, free ones, beats of the word that comes, words behind the
#: one that is offered, whether there is one, its second half.
PARTS, WORDS, LONGEST, BEGAN, ADDRESS, LEFT, FREE, PART, BEHIND, VALID, HALF = range(11)
FETCH_SIZE = 11


def fresh_fetch(accelerator: Accelerator, instructions: int) -> State:
    """The state at reset, for a program at an address of whole pages."""
    state, beat = np.zeros(FETCH_SIZE, np.int64), accelerator.beat
    parts, words = max(BYTES // beat, 1), max(beat // BYTES, 1)
    state[[PARTS, WORDS, LONGEST]] = parts, words, min(CHUNK * BYTES // beat, 1 << accelerator.burst.bit_length() - 1)
    state[LEFT] = instructions * parts if words == 1 else (instructions + 1) // 2
    state[FREE] = AHEAD // words * parts
    return state


@njit
def start(s: State, place: int) -> None:
    """Begin at an instruction that is not the first."""
    skipped = place // s[WORDS] * s[PARTS]
    s[ADDRESS], s[LEFT], s[HALF] = skipped, s[LEFT] - skipped, place % s[WORDS]


@njit
def fetch_asks(s: State) -> int:
    """Beats of the burst that fetch asks for, 0 for none."""
    if s[BEGAN] == 0 or s[LEFT] == 0 or s[FREE] < s[LONGEST]:
        return 0
    return min(s[LEFT], s[LONGEST] - s[ADDRESS] % s[LONGEST])


@njit
def fetch(s: State, asked: int, came: bool, taken: bool) -> None:
    """The end of a cycle: beats asked for, whether one has come, whether an instruction is taken."""
    pop = taken and s[HALF] == s[WORDS] - 1
    read = s[BEHIND] > 0 and (pop or s[VALID] == 0)
    whole = came and s[PART] == s[PARTS] - 1
    if taken and s[WORDS] == 2:
        s[HALF] ^= 1
    if came:
        s[PART] = 0 if whole else s[PART] + 1
    s[ADDRESS] += asked
    s[LEFT] -= asked
    s[FREE] += read * s[PARTS] - asked
    s[BEHIND] += whole - read
    s[VALID] = read or (s[VALID] == 1 and not pop)
    s[BEGAN] = 1


#: Places of the state of reads, and of writes: bursts under way at most; beats of the address that is offered, 0 for
#: none; bursts under way, and which of them are a load's (of writes: end an instruction), the oldest lowest.
MOST, OFFERED, UNDER_WAY, MARKED = range(4)
#: Further ones of writes: lengths behind the head of their queue, whether there is one; beats behind the head,
#: whether there is one; beats held, beats of the burst sent; and the ring of lengths with the place of its head.
LENGTHS_BEHIND, LENGTHS_VALID, BEATS_BEHIND, BEATS_VALID, HELD, SENT, LENGTH_HEAD = range(4, 11)
_LENGTHS, _RING = 11, 32
SIZE = _LENGTHS + _RING


def fresh(accelerator: Accelerator) -> State:
    """The state of reads, or of writes, at reset."""
    state = np.zeros(SIZE, np.int64)
    state[MOST] = accelerator.reads
    return state


@njit
def free(s: State, ready: bool) -> bool:
    """Whether a burst is taken, if the address channel is ``ready``."""
    return (s[OFFERED] == 0 or ready) and s[UNDER_WAY] != s[MOST]


@njit
def address(s: State, ready: bool, beats: int, marked: bool, pop: bool) -> None:
    """The end of a cycle: beats of the burst that is taken, 0 for none, its mark; and whether the oldest is over."""
    if ready:
        s[OFFERED] = 0
    s[UNDER_WAY] -= pop
    if pop:
        s[MARKED] >>= 1
    if beats:
        s[OFFERED] = beats
        s[MARKED] |= marked << s[UNDER_WAY]
        s[UNDER_WAY] += 1


@njit
def room(s: State, comes: bool) -> bool:
    """Whether a store may read V for another beat; ``comes``: one is on its way."""
    return s[HELD] + comes < BEATS


@njit
def w_valid(s: State) -> bool:
    """Whether there is a beat on the bus."""
    return s[LENGTHS_VALID] == 1 and s[BEATS_VALID] == 1


@njit
def write(s: State, d: State, beats: int, comes: bool) -> None:
    """The end of a cycle: beats of a burst that is taken, 0 for none; whether a beat comes from the store."""
    goes = w_valid(s) and d[dram.W_READY] == 1
    ends = goes and s[SENT] == s[_LENGTHS + s[LENGTH_HEAD]] - 1
    if beats:
        s[_LENGTHS + (s[LENGTH_HEAD] + s[LENGTHS_VALID] + s[LENGTHS_BEHIND]) % _RING] = beats
    read = s[LENGTHS_BEHIND] > 0 and (ends or s[LENGTHS_VALID] == 0)
    s[LENGTHS_BEHIND] += (beats > 0) - read
    s[LENGTHS_VALID] = read or (s[LENGTHS_VALID] == 1 and not ends)
    if ends:
        s[LENGTH_HEAD] = (s[LENGTH_HEAD] + 1) % _RING
    read = s[BEATS_BEHIND] > 0 and (goes or s[BEATS_VALID] == 0)
    s[BEATS_BEHIND] += comes - read
    s[BEATS_VALID] = read or (s[BEATS_VALID] == 1 and not goes)
    s[HELD] += comes - goes
    if goes:
        s[SENT] = 0 if ends else s[SENT] + 1
