"""Loads and stores behind their bursts, cycle by cycle: pieces that wait, beats into memories and out of V."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hbfp.isa.instructions import Memory

from . import walk

State = NDArray[np.int64]

#: Pieces that a store keeps until V is read.
STORE_PIECES = 4
#: Places of the state: lanes, beats of a record, pieces that there is room for; those in the memory behind the head,
#: whether there is a head, its place in the ring; the beat of the piece that is next; whether a run has its second
#: word to come; whether a store's beat goes out, and its instruction's last.
LANES, RECORD, DEPTH, BEHIND, VALID, HEAD, STEP, SECOND, OUT = range(9)
_PIECES = 9
#: What a piece is, and pieces in the ring.
MEMORY, ELEMENTS, PLACE, LANE, RUN, INDEX, BEATS, LAST = range(8)
_FIELDS, _RING = 8, 32
SIZE = _PIECES + _FIELDS * _RING
_V, _W = int(Memory.V), int(Memory.W)
#: What :func:`target` says, beside a memory: the exponents of W.
SCALES = 3


def fresh(lanes: int, record: int, depth: int) -> State:
    """The state at reset."""
    state = np.zeros(SIZE, np.int64)
    state[[LANES, RECORD, DEPTH]] = lanes, record, depth
    return state


@njit
def room(s: State) -> bool:
    """Whether another piece has room."""
    return s[BEHIND] + s[VALID] != s[DEPTH]


@njit
def head(s: State) -> int:
    """Where the piece at the head is."""
    return _PIECES + _FIELDS * s[HEAD]


@njit
def step(s: State, push: bool, w: State, f: State, shift: int, pop: bool) -> None:
    """The end of a cycle: whether the burst that the walker offers becomes a piece, and whether the head goes."""
    if push:
        place = _PIECES + _FIELDS * ((s[HEAD] + s[VALID] + s[BEHIND]) % _RING)
        s[place + MEMORY], s[place + ELEMENTS], s[place + PLACE] = w[walk.MEMORY], w[walk.ELEMENTS], w[walk.PLACE]
        s[place + LANE] = w[walk.OFFSET] // 4 % s[LANES]
        s[place + RUN], s[place + INDEX], s[place + BEATS] = w[walk.RUN], w[walk.DONE], walk.beats(w)
        s[place + LAST] = walk.last(w, f, shift)
    read = s[BEHIND] > 0 and (pop or s[VALID] == 0)
    s[BEHIND] += push - read
    s[VALID] = read or (s[VALID] == 1 and not pop)
    if pop:
        s[HEAD] = (s[HEAD] + 1) % _RING


@njit
def straddles(s: State) -> bool:
    """Whether the beat that is next for V goes on in the next word, after this one."""
    piece = head(s)
    if s[piece + ELEMENTS] == 0 or s[SECOND] == 1:
        return False
    lanes, run = s[LANES], s[piece + RUN]
    into, space = s[piece + PLACE] % lanes, lanes - s[piece + LANE]
    if (s[piece + INDEX] + s[STEP]) % 2 == 1:
        first, end = into + space, into + run
    else:
        first, end = into, into + min(run, space)
    return first < lanes and end > lanes


@njit
def target(s: State, valid: bool) -> int:
    """Which memory a load's beat, if there is one, asks to be written to; -1 for none."""
    if not valid or s[VALID] == 0:
        return -1
    piece = head(s)
    if s[piece + MEMORY] == _W and s[piece + INDEX] + s[STEP] == s[RECORD] - 1:
        return SCALES
    return s[piece + MEMORY]


@njit
def move(s: State) -> bool:
    """A beat of the head has moved; whether it was the piece's last."""
    s[STEP] += 1
    if s[STEP] == s[head(s) + BEATS]:
        s[STEP] = 0
        return True
    return False
