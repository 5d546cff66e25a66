"""First fit where partial sums are chains: what post-processors do then, with all banks and routes that it takes.

A tile has one post-processor. It takes the sums of the tile's chains one after the other, ascending along K, adds them
up in a memory of its own, and activates the tile with the last. The result goes to the bank of the tile of X that it
becomes, if it becomes one, or stays with the post-processor.
"""

from collections import Counter

import numpy as np
from numba import njit

from . import state
from .graph import Reach
from .machine import Machine
from .routes import find, take
from .state import NONE
from .tiling import Tiles

#: What a product reads of another whose tiles of results are its tiles of X.
SAME = Reach()


def feeds(tiles: Tiles, machine: Machine) -> list[int]:
    """Of each product, the one whose tiles of X its tiles of results are, or NONE.

    That is the only one which reads it, row by row, with as many terms as it has columns and the same rows in a tile.
    """
    readers = Counter(source for gemm in tiles.gemms for source in gemm.sources)
    found = [NONE] * len(tiles.gemms)
    for number, gemm in enumerate(tiles.gemms):
        for source, reach in gemm.sources.items():
            other = tiles.gemms[source]
            if (len(gemm.sources) == readers[source] == gemm.groups == other.groups == 1 and reach == SAME
                    and (gemm.m, gemm.k) == (other.m, other.n) and machine.rows == machine.columns
                    and tiles.partition[number] == tiles.partition[source]):
                found[source] = number
    return found


def becomes(tiles: Tiles, feeds: list[int], gemm: int, number: int) -> np.ndarray:
    """The tiles of X that the column tiles of a product's row tile ``number`` become, or NONE of each."""
    columns, reader = int(tiles.shape[gemm, 3]), feeds[gemm]
    if reader == NONE:
        return np.full(columns, NONE, np.int64)
    return int(tiles.first_x[reader]) + number * columns + np.arange(columns)


@njit(cache=True)
def passes(taken: state.Rounds, length: np.ndarray, value: int, post: int, t: int, tile_x: int, times: state.Times,
           pods: int) -> tuple[int, int, int]:
    """Take sum ``value`` through a post-processor in the first round from ``t`` on that has room.

    Returns
    -------
    tuple of int
        Round, and copies of the networks to and from the post-processor; a round of NONE if there are too few.
    """
    bank = value % pods
    for later in range(t, min(len(taken.post), len(length))):
        if taken.post[later, post] != NONE or taken.post_in[later, bank] != NONE or 0 < length[later] < times.round:
            continue
        copy_in, copy_out = find(taken.link_post[later], bank, post), NONE
        if copy_in < 0:
            continue
        if tile_x != NONE:
            if taken.result[later, tile_x % pods] != NONE:
                continue
            copy_out = find(taken.link_result[later], post, tile_x % pods)
            if copy_out < 0:
                continue
            take(taken.link_result[later], copy_out, post, tile_x % pods)
            taken.result[later, tile_x % pods] = tile_x
        take(taken.link_post[later], copy_in, bank, post)
        taken.post[later, post] = taken.post_in[later, bank] = value
        length[later] = max(length[later], times.round)
        return later, copy_in, copy_out
    return NONE, NONE, NONE


def activate_all(taken: state.Rounds, length: np.ndarray, plan: state.Schedule, machine: Machine, row: int,
                 sums: np.ndarray, ready: np.ndarray, count: np.ndarray, added: int, tile_x: np.ndarray,
                 times: state.Times) -> tuple[state.Rounds, np.ndarray, int]:
    """Add the sums of all column tiles of a row tile, chain after chain, and activate them with the last one.

    Parameters
    ----------
    sums, ready : ndarray (columns, steps)
        The last sum of each chain, and the round in which it can be read; ``count`` of each column.
    added : int
        Passes that the schedule has.
    tile_x : ndarray (columns,)
        The tile of X that each becomes, or NONE.

    Returns
    -------
    tuple
        Rounds and their cycles, longer if they had to be, and passes that the schedule has now.
    """
    plan.ready[row] = 0
    for column, chains in enumerate(count):
        post, t, before = (row * len(count) + column) % machine.pods, 0, NONE
        for chain in range(chains):
            value, wanted = sums[column, chain], max(t, ready[column, chain])
            becomes_x = tile_x[column] if chain == chains - 1 else NONE
            found = NONE, NONE, NONE
            while found[0] == NONE:
                found = passes(taken, length, value, post, wanted, becomes_x, times, machine.pods)
                if found[0] == NONE:
                    rounds = max(len(taken.used), wanted) * 5 // 4 + 64
                    taken = state.longer(taken, machine, rounds)
                    length = np.concatenate((length, np.zeros(max(0, rounds - len(length)), np.int32)))
            t = found[0] + 1
            plan.add_a[added], plan.add_b[added], plan.add_row[added] = value, before, row
            plan.add_column[added], plan.add_x[added], plan.add_post[added] = column, becomes_x, post
            plan.add_round[added], plan.add_in[added], plan.add_out[added] = found
            before = len(plan.round) + added
            added += 1
        plan.ready[row] = max(plan.ready[row], state.after(length, times.shortest, t - 1, times.result))
    return taken, length, added
