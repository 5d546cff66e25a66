"""The core, cycle by cycle: what is taken and given, and when; the registers of ``rtl/core`` that decide it.

Rows, weights and results have no values here.
:mod:`golden.perf.accelerator.way_out` has when results leave and, where columns share an accumulator,
:mod:`golden.perf.accelerator.shared` when rows are accumulated.
"""

import numpy as np
from numba import njit

from hbfp.design import Design

from ..cycles import ring_words
from . import shared, way_out
from .record import Record, made, part, record

#: Tiles that the weight buffer holds, unless it holds one and some words.
_TILES = 2
_PAIR = (np.int64, (2,))

STATE = record(
    # What follows from the design.
    "rows interval through release "
    # Rows that the weight buffer takes and lets go together, as many parts of a tile, parts that it holds, cycles from
    # one that goes to the next; banks of results, passes of a block, and of one of a sparse command.
    "height parts most apart banks block sparse_block "
    # Weight buffer: parts taken, row of the tile, tiles filled.
    "taken tile_row filled "
    # Sequencer: commands held; until the next pass, its bank, row and pass, and the pass's place in its block; free
    # banks.
    "held gap bank row tile place free",
    # Weight buffer: a tile became full in the last cycle. Sequencer: no pass of the command has closed a block.
    # Of a row of wide mantissas the first beat, the high digits, has come.
    "full fresh half "
    # Wires, set by the units: a row of weights, one of X, and a command are transferred.
    "w x commanded",
    # Cycles until the next parts of the tiles of up to two passes are released, and how many there are; commands of the
    # sequencer.
    until_released=_PAIR, left=_PAIR, commands=(way_out.COMMAND, (2,)), shared=shared.STATE, out=way_out.STATE,
    command=way_out.COMMAND)    # wire: the one that is transferred


def fresh(design: Design, latency: dict[str, int]) -> Record:
    """The state at reset; ``latency`` is the manifest's."""
    state = made(STATE, rows=design.rows, interval=latency["interval"],
                 through=latency["array"] + latency["accumulate"], release=latency["release"], free=3,
                 height=design.rows, parts=1, most=_TILES, banks=design.banks, block=design.block_tiles,
                 sparse_block=design.lay(True).block_tiles, fresh=True,
                 shared=shared.fresh(design, latency), out=way_out.fresh(latency))
    if design.weight_tiles == 1:
        assert design.group is not None
        state["height"], state["parts"] = design.group[0], design.group_rows
        state["most"], state["apart"] = ring_words(design, latency), latency["word"]
    return state


@njit
def w_ready(s: Record) -> bool:
    """Whether a row of weights is taken."""
    return s.taken != s.most or s.tile_row % s.height != 0


@njit
def x_ready(s: Record) -> bool:
    """Whether a row of X is taken."""
    if s.held == 0 or _closes(s) and not _room(s):
        return False
    if _under_way(s):
        return True
    return s.filled != 0 and s.gap == 0 and (s.tile != 0 or s.free >> s.bank & 1 == 1)


@part
def _under_way(s):
    """Whether a pass is under way."""
    return s.half or s.row != 0


@njit
def command_ready(s: Record) -> bool:
    """Whether a command is taken."""
    return s.held != 2


@part
def _closes(s):
    """Whether the pass closes a block."""
    block = s.sparse_block if s.commands[0].sparse else s.block
    return s.place == block - 1 or s.tile + 1 == s.commands[0].passes


@part
def _room(s):
    """Whether a row of a pass that closes a block finds room for its sums."""
    if s.shared.columns > 1:
        return shared.room(s.shared, s.row)
    return s.banks == 2 or s.free >> (s.bank ^ 1) & 1 == 1 or (s.fresh and way_out.past(s.out, s.row))


@njit
def step(s: Record) -> None:
    """The end of a cycle."""
    whole = s.x and (s.half or s.commands[0].wide_x == 0)    # a row has come
    if s.shared.columns > 1:
        # Results have one bank: of the command before, if there is one that is complete.
        vacant = s.out.complete == 0 or way_out.past_shared(s.out, s.shared.place)
        turned = shared.step(s.shared, whole and _closes(s), s.row, s.commands[0].rows,
                             s.tile + 1 == s.commands[0].passes, s.bank, vacant, s.out.due[0] + s.out.due[1] > 0)
    freed = way_out.step(s.out)
    if s.shared.columns > 1 and turned >= 0:
        s.out.due[turned] = s.shared.result
    starts = _sequence(s, freed, whole)
    _buffer(s, starts)


@part
def _sequence(s, freed, whole):
    """The sequencer; whether a pass starts."""
    under_way = _under_way(s)
    starts = s.x and not under_way
    begins = 0
    if starts and s.tile == 0:
        begins = 1 << s.bank
        s.out.commands[s.bank] = s.commands[0]
    if s.gap != 0 and (s.x or not under_way):
        s.gap -= 1
    if starts:
        s.gap = s.interval - 1
    s.free = s.free & ~begins | freed
    if s.x:
        s.half = not whole
    if whole:
        s.row += 1
        if s.row == s.commands[0].rows:
            closes = _closes(s)
            s.row = 0
            s.tile += 1
            s.place = 0 if closes else s.place + 1
            if closes:
                s.fresh = False
            if s.tile == s.commands[0].passes:
                s.tile = 0
                s.fresh = True
                if s.shared.columns == 1:
                    s.out.due[s.bank] = s.through
                s.bank ^= 1
                s.commands[0] = s.commands[1]
                s.held -= 1
    if s.commanded:
        s.commands[s.held] = s.command
        s.held += 1
    return starts


@part
def _buffer(s, starts):
    """The weight buffer; ``starts``: a pass does."""
    if starts:    # two passes start further apart than half the time until the release
        place = 0 if s.left[0] == 0 else 1
        s.until_released[place], s.left[place] = s.release + 1, s.parts
    for place in range(2):
        if s.left[place] > 0:
            s.until_released[place] -= 1
            if s.until_released[place] == 0:
                s.taken -= 1
                s.left[place] -= 1
                s.until_released[place] = s.apart
    full = False
    if s.w:
        s.taken += s.tile_row % s.height == 0
        s.tile_row += 1
        if s.tile_row == s.rows:
            s.tile_row = 0
            full = True
    s.filled += s.full - starts
    s.full = full
