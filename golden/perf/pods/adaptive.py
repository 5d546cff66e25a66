"""A scheduler beside first fit: operations as tall as a layer asks for, rounds as long as those, and finer waiting.

Every layer has a partition of its own: of all from the array's rows up to a limit the one whose rounds take the fewest
cycles (49 rows of X are one operation of 49 instead of two of 32). A round is as long as the operations that opened it,
and shorter ones fill it, also those of other layers. A tile of X waits for the channels that it has, not for all that
its layer reads, so that what a concatenation has had for long runs while the rest is still computed. Which limit is
best depends on how many pods there are; all of a few are scheduled, and the schedule of the fewest cycles is taken.
"""

from collections.abc import Sequence

from . import state
from .first_fit import first_fit
from .graph import Gemm
from .machine import Machine
from .tiling import Tiles, cut

#: Most rows of an operation, over the array's rows, that are tried.
LIMITS = (1.0, 1.25, 1.6, 2.0)


def partitions(gemms: Sequence[Gemm], machine: Machine, most: int) -> list[int]:
    """The partition of each product whose operations take the fewest cycles; the lowest of equals."""
    tries = range(machine.rows, max(most, machine.rows) + 1)
    cycles = [machine.round(rows) for rows in tries]
    return [min(zip([-(-each.m // rows) * long for rows, long in zip(tries, cycles, strict=True)], tries,
                    strict=True))[1] for each in gemms]


def adaptive(gemms: Sequence[Gemm], machine: Machine, order: Sequence[int], starts: Sequence[int],
             most: int) -> tuple[Tiles, state.Schedule]:
    """The schedule of the fewest cycles.

    Parameters
    ----------
    gemms, machine, order, starts
        As of :func:`golden.perf.pods.first_fit.first_fit`.
    most : int
        Rows of X that an operation may have, so that its tiles fit into their banks.

    Returns
    -------
    Tiles, state.Schedule
    """
    tried = {tuple(partitions(gemms, machine, min(int(limit * machine.rows), most))): None for limit in LIMITS}
    best = None
    for partition in tried:
        tiles = cut(gemms, partition, machine.rows, machine.columns, "channels")
        plan = first_fit(tiles, machine, order, starts)
        cycles = int(state.ends(machine, tiles, plan).max())
        if best is None or cycles < best[0]:
            best = cycles, tiles, plan
    assert best is not None
    return best[1:]
