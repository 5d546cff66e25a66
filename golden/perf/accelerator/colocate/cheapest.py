"""Where YIELDs cost least, in a program that is short enough to be begun from each place where one may stand."""

from collections.abc import Sequence

import numpy as np

from hbfp.golden.lower.yields import cut
from hbfp.program import Program

from ..model import times

#: Cycles from the end of a quantum to the next one, of the dispatcher (docs/design/13-dispatched.md).
_BETWEEN = 8


def cheapest(program: Program, allowed: Sequence[int], most: int, latency: dict[str, int], dram_latency: int,
             bandwidth: int) -> list[int] | None:
    """Instructions before which YIELDs stand, so that all quanta together take the fewest cycles.

    What a quantum takes that begins in a place is that of the program with one YIELD, there: the cycle model tells it
    for every place in which the quantum may end, if what comes behind that takes nothing from it. Which quanta take
    the fewest cycles then follows from place to place.

    Parameters
    ----------
    program : Program
    allowed : sequence of int
        Where a YIELD may stand, ascending, without 0.
    most : int
        Cycles of the longest quantum.
    latency, dram_latency, bandwidth
        As of :func:`golden.perf.accelerator.model.times`.

    Returns
    -------
    list of int or None
        Ascending; None if some quantum is longer wherever they stand.
    """
    ends = np.array([*allowed, len(program.instructions)])
    best, before = {0: 0}, dict[int, int]()
    for first in (0, *allowed):
        if first not in best:
            continue
        begun = cut(program, [first] if first else []).program
        done = np.maximum.accumulate(times(begun, latency, dram_latency, bandwidth).completed)
        behind = ends[ends > first]
        cycles = done[behind - (not first)] - (done[first] if first else 0)
        for end, taken in zip(behind.tolist(), cycles.tolist(), strict=True):
            cost = best[first] + taken + _BETWEEN
            if taken <= most and cost < best.get(end, np.inf):
                best[end], before[end] = cost, first
    found, place = list[int](), int(ends[-1])
    while place:
        if place not in before:
            return None
        found.append(place)
        place = before[place]
    return found[:0:-1]
