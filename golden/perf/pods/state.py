"""What a schedule occupies, round by round, and the schedule that comes out: plain arrays, so that numba can fill them.

NONE stands for what is free or does not apply.
"""

from collections import namedtuple

import numpy as np
from numba import njit

from .machine import Machine
from .tiling import Tiles

NONE = -1
#: What is taken, by round: pods (operation), banks' reads of X, of W, of partial sums (tile) and writes of partial sums
#: (operation), links of the four networks, and how many pods and post-processors are taken; ``skip``: a round at or
#: after this one that may have a free pod, followed until it stands still. With chains also post-processors
#: (operation), banks' reads for them (operation), banks' writes of X (tile), links to and from post-processors.
Rounds = namedtuple("Rounds", "pod x w partial_in partial_out link_x link_w link_in link_out post post_in result "
                    "link_post link_result used skip")
#: Of each operation: round, pod, partial sum it goes on from (operation or NONE), copy of each network; of each
#: addition: its two operands (an operation, or operations + an addition; NONE: the second is none), row tile, column
#: tile, round and, with chains, tile of X that it becomes, post-processor, copies to and from it; of each row tile:
#: first round in which it can be read; of each round: its cycles.
Schedule = namedtuple("Schedule", "round pod chained copy add_a add_b add_row add_column add_round add_x add_post "
                      "add_in add_out ready length")


#: Cycles: of a product's rounds, of the shortest rounds, from an operation to its sum, from an addition to its sum, and
#: from the last addition to the last row of the result.
Times = namedtuple("Times", "round shortest product sum result")


def times(machine: Machine, partition: int, shortest: int) -> Times:
    """The times of a product whose operations have ``partition`` rows of X."""
    return Times(machine.round(partition), shortest, machine.product_cycles, machine.sum_cycles,
                 machine.sum_cycles + partition)


@njit(cache=True)
def after(length: np.ndarray, shortest: int, t: int, cycles: int) -> int:
    """The first round that starts at least so many cycles after the start of round ``t``.

    ``length`` has the cycles of each round, 0 where they are not settled yet; such a round is at least ``shortest``,
    and that it may become longer only gives more time.
    """
    while cycles > 0:
        cycles -= max(length[t], shortest)
        t += 1
    return t


def rounds(machine: Machine, count: int) -> Rounds:
    """So many rounds with everything free."""
    pods = machine.pods
    links, some = machine.interconnect.links(pods), count if machine.chains else 0
    return Rounds._make([*(np.full((count, pods), NONE, np.int32) for _ in range(5)),
                         *(np.full((count, *links), NONE, np.int16) for _ in range(4)),
                         *(np.full((some, pods), NONE, np.int32) for _ in range(3)),
                         *(np.full((some, *links), NONE, np.int16) for _ in range(2)),
                         np.zeros(count, np.int32), np.arange(count, dtype=np.int32)])


def longer(taken: Rounds, machine: Machine, count: int) -> Rounds:
    """The same with so many rounds in all."""
    more = rounds(machine, count - len(taken.used))
    joined = [np.concatenate(pair) for pair in zip(taken, more, strict=True)]
    joined[-1][len(taken.used):] = np.arange(len(taken.used), count)
    return Rounds._make(joined)


def ends(machine: Machine, tiles: Tiles, plan: Schedule) -> np.ndarray:
    """Of each addition, the cycle in which the last row of its result is in a bank."""
    starts = np.cumsum(plan.length) - plan.length
    gemm = np.searchsorted(tiles.first_row, plan.add_row, "right") - 1
    cycles = np.where(plan.add_x == NONE, machine.kept_cycles, machine.sum_cycles)
    return starts[plan.add_round] + cycles + tiles.partition[gemm]


def schedule(tiles: Tiles) -> Schedule:
    """An empty schedule."""
    count = tiles.operations
    return Schedule._make([*(np.full(count, NONE, np.int32) for _ in range(3)), np.full((count, 4), NONE, np.int8),
                           *(np.full(count, NONE, np.int32) for _ in range(9)),
                           np.full(int(tiles.first_row[-1]), NONE, np.int32), np.zeros(0, np.int32)])
