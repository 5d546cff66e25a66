"""First fit where partial sums are chains: post-processors activate tiles at their banks, and results take routes.

All that a tile needs of a post-processor then is one pass, at the bank where its last sum lies. Its result goes to the
bank of the tile of X that it becomes, if it becomes one, or stays with the post-processor.
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
def activate(taken: state.Rounds, length: np.ndarray, value: int, t: int, tile_x: int, times: state.Times,
             pods: int) -> tuple[int, int]:
    """Activate the tile whose last sum is ``value`` in the first round from ``t`` on that has room.

    Returns
    -------
    tuple of int
        Round and copy of the network; NONE and NONE if there are too few rounds.
    """
    bank = value % pods
    for later in range(t, min(len(taken.post), len(length))):
        if taken.post[later, bank] != NONE or 0 < length[later] < times.round:
            continue
        copy = NONE
        if tile_x != NONE:
            if taken.result[later, tile_x % pods] != NONE:
                continue
            copy = find(taken.link_result[later], bank, tile_x % pods)
            if copy < 0:
                continue
            take(taken.link_result[later], copy, bank, tile_x % pods)
            taken.result[later, tile_x % pods] = tile_x
        taken.post[later, bank] = value
        length[later] = max(length[later], times.round)
        return later, copy
    return NONE, NONE


def activate_all(taken: state.Rounds, length: np.ndarray, plan: state.Schedule, machine: Machine, row: int,
                 sums: np.ndarray, ready: np.ndarray, added: int, tile_x: np.ndarray, times: state.Times
                 ) -> tuple[state.Rounds, np.ndarray, int]:
    """Activate all column tiles of a row tile.

    Parameters
    ----------
    sums, ready, tile_x : ndarray (columns,)
        The last sum of each tile, the round in which it can be read, the tile of X that it becomes or NONE.
    added : int
        Activations that the schedule has.

    Returns
    -------
    tuple
        Rounds and their cycles, longer if they had to be, and activations that the schedule has now.
    """
    plan.ready[row] = 0
    for column, (value, wanted, tile) in enumerate(zip(sums, ready, tile_x, strict=True)):
        t = NONE
        while t == NONE:
            t, copy = activate(taken, length, value, wanted, tile, times, machine.pods)
            if t == NONE:
                count = max(len(taken.used), wanted) * 5 // 4 + 64
                taken = state.longer(taken, machine, count)
                length = np.concatenate((length, np.zeros(max(0, count - len(length)), np.int32)))
        plan.add_a[added], plan.add_row[added], plan.add_column[added] = value, row, column
        plan.add_round[added], plan.add_x[added], plan.add_copy[added] = t, tile, copy
        plan.ready[row] = max(plan.ready[row], state.after(length, times.shortest, t, times.result))
        added += 1
    return taken, length, added
