"""The core, cycle by cycle: what is taken and given, and when; the registers of ``rtl/core`` that decide it.

Rows, weights and results have no values here. Columns that share an accumulator, wide mantissas and sparse weights,
which an accelerator's core has not, are left out.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hbfp.design import Design

State = NDArray[np.int64]

#: Tiles that the weight buffer holds; stages of the way out behind a bank's word.
TILES, STAGES = 2, 4
_LAST = 1 << STAGES - 1
#: Places of the state. What follows from the design:
(ROWS, INTERVAL, THROUGH, RELEASE,
 # weight buffer: tiles taken, row of the tile, tiles filled, whether one became full in the last cycle, cycles until
 # the tiles of up to two passes are released (0: none),
 TAKEN, TILE_ROW, FILLED, FULL, RELEASE0, RELEASE1,
 # sequencer: commands held, their rows, passes and steps, and the pass that runs,
 HELD, ROWS0, TILES0, STEPS0, ROWS1, TILES1, STEPS1, GAP, BANK, ROW, TILE,
 # way out: cycles until a bank is complete (0: not under way), complete banks, free banks, rows and steps of each
 # bank, bank and row that are read, stages that hold a row, those that hold the last one, operands taken.
 DUE0, DUE1, COMPLETE, FREE, OUT_ROWS0, OUT_ROWS1, OUT_STEPS0, OUT_STEPS1, CURRENT, OUT_ROW, READING, VALID, FINAL,
 GOT,
 # the same where nothing stalls: cycles of a row to its queue (0: rows stall), whether it has a head, words behind it,
 # credits, whether one comes back, banks that were read, operands that are being loaded.
 WAY, HEAD, WAITING, CREDITS, BACK, READ, LOAD) = range(42)
SIZE = 42
#: Bits of a command's steps that take an operand.
SCALE, BIAS = 1, 2


def fresh(design: Design, latency: dict[str, int]) -> State:
    """The state at reset; ``latency`` is the manifest's."""
    state = np.zeros(SIZE, np.int64)
    state[[ROWS, INTERVAL, THROUGH, RELEASE]] = (design.rows, latency["interval"],
                                                latency["array"] + latency["accumulate"], latency["release"])
    state[FREE] = 3
    if latency["vector"] > 1:
        state[[WAY, CREDITS]] = latency["apart"], latency["apart"] + 4    # as rtl/lib/credits.py has
    return state


@njit
def w_ready(s: State) -> bool:
    """Whether a row of weights is taken."""
    return s[TAKEN] != TILES or s[TILE_ROW] != 0


@njit
def x_ready(s: State) -> bool:
    """Whether a row of X is taken."""
    if s[HELD] == 0:
        return False
    if s[ROW] != 0:
        return True
    return s[FILLED] != 0 and s[GAP] == 0 and (s[TILE] != 0 or (s[FREE] >> s[BANK]) & 1 == 1)


@njit
def command_ready(s: State) -> bool:
    """Whether a command is taken."""
    return s[HELD] != 2


@njit
def o_valid(s: State) -> bool:
    """Whether there is a row of results."""
    return s[HEAD] == 1 if s[WAY] else s[VALID] & _LAST != 0


@njit
def _pending(s):
    """A bank may be read out as soon as its operands are there, and the rows before have left."""
    left = s[VALID] & ((1 << s[WAY] - 2) - 1) if s[WAY] else s[VALID]
    return (s[COMPLETE] >> s[CURRENT]) & 1 == 1 and s[READING] == 0 and left == 0


@njit
def v_ready(s: State) -> bool:
    """Whether an operand is taken."""
    if s[WAY]:
        return s[LOAD] & 2 != 0
    return _pending(s) and s[OUT_STEPS0 + s[CURRENT]] & ~s[GOT] != 0


@njit
def _done(s):
    """Banks that are complete with this cycle, by bit."""
    done = 0
    for bank in range(2):
        if s[DUE0 + bank] > 0:
            s[DUE0 + bank] -= 1
            if s[DUE0 + bank] == 0:
                done |= 1 << bank
    return done


@njit
def _leave_stalling(s, v, o_ready):
    """The way out for a cycle, from what its registers are: banks that get free."""
    move = not o_valid(s) or o_ready
    current = s[CURRENT]
    last = s[OUT_ROW] + 1 == s[OUT_ROWS0 + current]
    want = s[OUT_STEPS0 + current] & ~s[GOT]
    start = _pending(s) and want == 0
    leaves = s[VALID] & s[FINAL] & 1 == 1 and move
    freed = 1 << current if leaves else 0
    done = _done(s)
    reading = s[READING]
    if v:
        s[GOT] |= SCALE if want & SCALE else BIAS
    if start:
        s[GOT], s[READING], s[OUT_ROW] = 0, 1, 0
    if reading and move:
        s[OUT_ROW] += 1
        if last:
            s[READING] = 0
    if move:
        s[VALID] = (s[VALID] << 1 | reading) & (2 * _LAST - 1)
        s[FINAL] = (s[FINAL] << 1 | last) & (2 * _LAST - 1)
    if leaves:
        s[CURRENT] ^= 1
    s[COMPLETE] = (s[COMPLETE] | done) & ~freed
    return freed


@njit
def _leave(s, v, o_ready):
    """The same where nothing stalls; rtl/core/credit_drain.py."""
    current, freed = s[CURRENT], s[READ]
    issue = s[READING] == 1 and s[CREDITS] > 0
    last = s[OUT_ROW] + 1 == s[OUT_ROWS0 + current]
    want = s[OUT_STEPS0 + current] & ~s[GOT]
    pending = _pending(s)
    start = pending and want == 0
    leaves = 1 << current if issue and last else 0
    read = s[WAITING] > 0 and (o_ready or s[HEAD] == 0)
    back = s[HEAD] == 1 and o_ready
    s[WAITING] += ((s[VALID] >> s[WAY] - 1) & 1) - read
    s[HEAD] = read or (s[HEAD] == 1 and not o_ready)
    s[CREDITS] += s[BACK] - issue
    s[BACK] = back
    s[VALID] = (s[VALID] << 1 | issue) & ((1 << s[WAY]) - 1)
    s[LOAD] = (s[LOAD] & 1) << 1 | (pending and want != 0 and s[LOAD] == 0)
    s[COMPLETE] = (s[COMPLETE] | _done(s)) & ~leaves
    s[READ] = leaves
    if v:
        s[GOT] |= SCALE if want & SCALE else BIAS
    if issue:
        s[OUT_ROW] += 1
    if leaves:
        s[READING] = 0
        s[CURRENT] ^= 1
    if start:
        s[GOT], s[READING], s[OUT_ROW] = 0, 1, 0
    return freed


@njit
def step(s: State, w: bool, x: bool, rows: int, tiles: int, steps: int, v: bool, o_ready: bool) -> None:
    """The end of a cycle.

    Whether a row of weights and one of X are transferred; the rows of the command that is, 0 for none, with passes and
    steps; whether an operand is transferred, and whether a row of results would be taken.
    """
    freed = _leave(s, v, o_ready) if s[WAY] else _leave_stalling(s, v, o_ready)

    # The sequencer.
    begins = 0
    pop = pass_starts = 0
    if x:
        pass_starts = s[ROW] == 0
        if pass_starts and s[TILE] == 0:
            begins = 1 << s[BANK]
            s[OUT_ROWS0 + s[BANK]], s[OUT_STEPS0 + s[BANK]] = s[ROWS0], s[STEPS0]
    if s[GAP] != 0 and (x or s[ROW] == 0):
        s[GAP] -= 1
    if pass_starts:
        s[GAP] = s[INTERVAL] - 1
    s[FREE] = (s[FREE] & ~begins) | freed
    if x:
        s[ROW] += 1
        if s[ROW] == s[ROWS0]:
            s[ROW] = 0
            s[TILE] += 1
            if s[TILE] == s[TILES0]:
                pop = 1
                s[TILE] = 0
                s[DUE0 + s[BANK]] = s[THROUGH]
                s[BANK] ^= 1
    if pop:
        s[ROWS0], s[TILES0], s[STEPS0] = s[ROWS1], s[TILES1], s[STEPS1]
        s[HELD] -= 1
    if rows:
        place = 3 * s[HELD]
        s[ROWS0 + place], s[TILES0 + place], s[STEPS0 + place] = rows, tiles, steps
        s[HELD] += 1

    # The weight buffer.
    released = 0
    for place in range(RELEASE0, RELEASE1 + 1):
        if s[place] > 0:
            s[place] -= 1
            released += s[place] == 0
    if pass_starts:    # two passes start further apart than half the time until the release
        s[RELEASE0 if s[RELEASE0] == 0 else RELEASE1] = s[RELEASE]
    full = 0
    if w:
        s[TAKEN] += s[TILE_ROW] == 0
        s[TILE_ROW] += 1
        if s[TILE_ROW] == s[ROWS]:
            s[TILE_ROW] = 0
            full = 1
    s[TAKEN] -= released
    s[FILLED] += s[FULL] - pass_starts
    s[FULL] = full
