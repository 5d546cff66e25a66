"""Banks of a size and a DRAM of a bandwidth under a schedule: what is loaded when, and how long rounds wait for it.

Weights come from the DRAM. Places are counted over the banks of all pods together, not bank by bank. A tile of W stays
until its place is needed; the one that was not used for the longest gives way, and its successor's load may begin when
the round of its last use has ended: prefetch reaches as far ahead as banks are large. Loads are made one after the
other in the order of first use, and a round waits for its own. Results stay in the banks of X until their last use;
what there is no room for is written out and read back, and the round in which it grew waits for that. Images and
results of the whole network are not counted.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from .machine import Machine
from .state import Schedule
from .tiling import Tiles


@dataclass(frozen=True)
class Memory:
    """Banks and DRAM.

    Attributes
    ----------
    bank : int
        Bytes of each bank.
    bandwidth : float
        Bytes a cycle of the DRAM; infinite if it never limits.
    element_bytes : float
    """
    bank: int
    bandwidth: float
    element_bytes: float = 1.0


@dataclass(frozen=True)
class Traffic:
    """What the memories add: cycles of the whole run, bytes of weights and of results that went out and came back."""
    cycles: int
    weight_bytes: int
    spilled_bytes: int


@njit(cache=True)
def _misses(tile: np.ndarray, when: np.ndarray, tiles: int, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Loads in the order of use: the round that needs each, and the last round of what gave way (-1: nothing did)."""
    used = np.full(tiles, -1, np.int64)         # the last access, by its place in the order
    resident = np.zeros(tiles, np.bool_)
    needed, freed = np.empty(len(tile), np.int64), np.empty(len(tile), np.int64)
    loads, count, oldest = 0, 0, 0
    for place in range(len(tile)):
        each = tile[place]
        used[each] = place
        if resident[each]:
            continue
        resident[each] = True
        needed[loads], freed[loads] = when[place], -1
        if count == room:
            while used[tile[oldest]] != oldest or not resident[tile[oldest]]:
                oldest += 1
            resident[tile[oldest]] = False
            freed[loads] = when[oldest]
        else:
            count += 1
        loads += 1
    return needed[:loads], freed[:loads]


@njit(cache=True)
def _stretch(length: np.ndarray, needed: np.ndarray, freed: np.ndarray, size: np.ndarray, bandwidth: float) -> float:
    """Cycles that rounds wait in all; each load has a round, the round that makes room, and bytes."""
    ends = np.zeros(len(length) + 1)    # of each round; the last entry stands for before the first
    at, channel, now = 0, 0.0, 0.0
    for t in range(len(length)):
        while at < len(needed) and needed[at] <= t:
            channel = max(channel, ends[freed[at]]) + size[at] / bandwidth
            now = max(now, channel)
            at += 1
        now += length[t]
        ends[t] = now
    return now - length.sum()


def spilled(tiles: Tiles, plan: Schedule, memory: Memory, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Rounds in which more results are alive than there is room for, and by how many bytes more than before."""
    count = len(plan.length)
    last = np.zeros(int(tiles.first_row[-1]), np.int64)
    gemm = np.searchsorted(tiles.first_op, np.arange(tiles.operations), "right") - 1
    tile_x = tiles.first_x[gemm] + (np.arange(tiles.operations) - tiles.first_op[gemm]) // tiles.shape[gemm, 3]
    used = np.zeros(len(tiles.need_at) - 1, np.int64)
    np.maximum.at(used, tiles.need_of[tile_x], plan.round)
    for need in np.flatnonzero(np.diff(tiles.need_at)):
        for q in range(tiles.need_at[need], tiles.need_at[need + 1]):
            part = slice(tiles.need_first[q], tiles.need_last[q] + 1)
            last[part] = np.maximum(last[part], used[need])
    owner = np.searchsorted(tiles.first_row, np.arange(len(last)), "right") - 1
    size = np.array([each.n for each in tiles.gemms])[owner] * tiles.partition[owner] * memory.element_bytes
    begin = np.minimum(plan.ready, count - 1)
    alive = np.zeros(count + 1)
    np.add.at(alive, begin, size)
    np.add.at(alive, np.maximum(last, begin) + 1, -size)
    over = np.maximum(np.cumsum(alive)[:count] - room, 0)
    grown = np.maximum(np.diff(over, prepend=0), 0)
    rounds = np.flatnonzero(grown)
    return rounds, grown[rounds]


def run(tiles: Tiles, machine: Machine, plan: Schedule, memory: Memory, cycles: int) -> Traffic:
    """The cycles of a schedule with these memories.

    Parameters
    ----------
    cycles : int
        Cycles of the schedule without these memories.
    """
    gemm = np.searchsorted(tiles.first_op, np.arange(tiles.operations), "right") - 1
    inner = np.arange(tiles.operations) - tiles.first_op[gemm]
    steps, columns = tiles.shape[gemm, 2], tiles.shape[gemm, 3]
    group = inner // (steps * columns) % tiles.shape[gemm, 0]
    tile_w = tiles.first_w[gemm] + group * steps * columns + inner % (steps * columns)
    order = np.argsort(plan.round, kind="stable")
    tile_bytes = machine.rows * machine.columns * memory.element_bytes
    total = machine.pods * memory.bank
    needed, freed = _misses(tile_w[order], plan.round[order].astype(np.int64), int(tiles.first_w[-1]),
                            max(int(total // tile_bytes), 1))
    rounds, grown = spilled(tiles, plan, memory, total)
    every = np.concatenate((needed, rounds))
    turn = np.argsort(every, kind="stable")
    size = np.concatenate((np.full(len(needed), tile_bytes), 2 * grown))[turn]
    free = np.concatenate((freed, rounds - 1))[turn]
    wait = _stretch(plan.length, every[turn], free, size, memory.bandwidth)
    return Traffic(int(np.ceil(cycles + wait)), int(len(needed) * tile_bytes), int(2 * grown.sum()))


def bandwidth(gigabytes: float, ghz: float) -> float:
    """Bytes a cycle, from 10^9 bytes a second and the clock."""
    return gigabytes / ghz
