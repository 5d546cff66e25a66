"""Quanta: a program with YIELDs, none farther apart than a stated number of cycles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbfp.checks import check_range
from hbfp.golden.lower import divided
from hbfp.golden.lower.errors import LoweringError
from hbfp.golden.lower.rewriting import Rewritten
from hbfp.golden.lower.yields import cut, places
from hbfp.program import Program

from ..model import times
from ..times import Times, between_yields
from .cheapest import cheapest

#: How often places are sought anew: each time those quanta are halved that were too long.
_TRIES = 30
#: Cycles that a piece takes longer for beginning and ending alone, about, and how many of them a quantum must have for
#: places to be sought that leave room for that.
_ALONE, _MANY = 500, 50
#: Cycles for which a program may be stepped to find the places that cost least: some seconds.
_STEPPED = 4_000_000


class StretchError(LoweringError):
    """A program cannot yield often enough.

    Attributes
    ----------
    layers : frozenset of str
        Layers that have, or share, stretches that are too long.
    """

    def __init__(self, text: str, layers: frozenset[str]) -> None:
        super().__init__(text)
        self.layers = layers


def giving_way(lower: Callable[[frozenset[str]], Any], plan: Callable[[Any], Any]) -> tuple[Any, Any]:
    """A step of training that gives way often enough, and its plan.

    Parameters
    ----------
    lower : callable
        Gives the step in which the gradients of these layers' weights stand apart from others.
    plan : callable
        Of a step; raises :class:`StretchError`, whose layers are then put apart.

    Raises
    ------
    StretchError
        If that does not help.
    """
    apart = frozenset[str]()
    while True:
        step = lower(apart)
        try:
            return step, plan(step)
        except StretchError as error:
            more = frozenset(name for name in error.layers if name.startswith("gw ")) - apart
            if not more:
                raise
            apart |= more


@dataclass(frozen=True)
class Places:
    """Where a program yields.

    Attributes
    ----------
    short : Rewritten
        The program whose long VECTORs are several.
    before : tuple of int
        Its instructions before which a YIELD stands.
    """
    short: Rewritten
    before: tuple[int, ...]


def quanta(program: Program, times: Times) -> NDArray[np.int64]:
    """Cycles from the doorbell to a program's first YIELD, from each YIELD to the next, and to the end."""
    return np.diff(times.completed[[end for _, end in between_yields(program)]], prepend=0)


def yielding(program: Program, most: int, latency: dict[str, int], dram_latency: int, bandwidth: int
             ) -> tuple[Rewritten, Times]:
    """A program that yields often enough, and when its instructions start and complete.

    Parameters
    ----------
    program, most, latency, dram_latency, bandwidth
        As of :func:`sought`.

    Raises
    ------
    LoweringError
        If some instructions that must not be parted take more cycles.
    """
    memory = dram_latency, bandwidth
    return refined(sought(program, most, latency, *memory), most, latency, *memory)[1:]


def sought(program: Program, most: int, latency: dict[str, int], dram_latency: int, bandwidth: int) -> Places:
    """Places that cost the fewest cycles, of a short program, or as far apart as they may be.

    A VECTOR that takes more than half of a quantum is several, if its rows are apart.

    Parameters
    ----------
    program : Program
    most : int
        Cycles of the longest quantum, at least 1.
    latency, dram_latency, bandwidth
        As of :func:`golden.perf.accelerator.model.times`.
    """
    check_range("Quantum", most, 1, 1 << 40)
    memory = dram_latency, bandwidth
    found = times(program, latency, *memory)
    short = divided.divided(program, _long(program, most, found))
    if len(short.program.instructions) > len(program.instructions):
        found = times(short.program, latency, *memory)
    allowed = np.flatnonzero(places(short.program))
    allowed, before = allowed[allowed > 0], None
    if most < found.cycles and len(allowed) * found.cycles <= _STEPPED:
        before = cheapest(short.program, allowed.tolist(), most, latency, *memory)
    most -= _ALONE if most > _ALONE * _MANY else 0
    return Places(short, tuple(before or _greedy(allowed, np.maximum.accumulate(found.completed), most)))


def refined(given: Places, most: int, latency: dict[str, int], dram_latency: int, bandwidth: int
            ) -> tuple[Places, Rewritten, Times]:
    """Places, and more where they were too far apart; the program that yields there, and its times.

    A piece between two YIELDs takes longer than the same instructions did without them, for it begins and ends alone;
    so what is too long in the cycle model is halved until nothing is.

    Parameters
    ----------
    given : Places
        Of another quantum or another bandwidth, too.
    most, latency, dram_latency, bandwidth
        As of :func:`sought`.

    Raises
    ------
    LoweringError
        If some instructions that must not be parted take more cycles.
    """
    short, before = given.short, list(given.before)
    allowed = np.flatnonzero(places(short.program))
    for _ in range(_TRIES):
        now = cut(short.program, before)
        found = times(now.program, latency, dram_latency, bandwidth)
        lengths = quanta(now.program, found)
        if (lengths <= most).all():
            return Places(short, tuple(before)), short.then(now), found
        before = _halved(short.program, allowed[allowed > 0], before, lengths, most, now, found)
    raise LoweringError(f"Quanta of {most:,} cycles were not found, the longest has {lengths.max():,}")


def _long(program, most, found):
    """VECTORs that take more than half of a quantum and may be divided -> parts that do not, as far as there are rows.
    """
    parts = {number: min(count, -int(-2 * (found.completed[number] - found.started[number]) // most))
             for number, count in divided.rows(program).items()}
    return {number: count for number, count in parts.items() if count > 1}


def _greedy(allowed, done, most):
    """Places as far apart as the cycles allow that the program takes without YIELDs."""
    before, start, last = list[int](), 0, None
    for number in allowed.tolist():
        if done[number - 1] - start > most and last is not None:
            before.append(last)
            start, last = done[last - 1], None
        last = number
    if done[-1] - start > most and last is not None:
        before.append(last)
    return before


def _halved(program, allowed, before, lengths, most, now, found):
    """The places, and one more in each quantum that is too long: nearest to the half of its cycles."""
    more, bounds = [], [0, *before, len(program.instructions)]
    done = np.maximum.accumulate(found.completed)
    for place in np.flatnonzero(lengths > most).tolist():
        first, stop = bounds[place], bounds[place + 1]
        inner = allowed[(allowed > first) & (allowed < stop)]
        if not len(inner):
            # Others that are too long are known with it: each by itself would cost a lowering.
            stretches = np.diff(done[now.numbers[allowed] - 1], append=done[-1])
            parts = zip(allowed, [*allowed[1:], len(program.instructions)], strict=True)
            long = [part for part, cycles in zip(parts, stretches, strict=True) if cycles > most]
            raise StretchError(
                f"{_told(_layers(program, first, stop))} has {lengths[place]:,} cycles between two places where it may "
                f"yield, which is more than {most:,}; a longer quantum would do",
                frozenset(name for part in [(first, stop), *long] for name in _layers(program, *part)))
        ends = np.array([done[now.numbers[number] - 2] for number in inner.tolist()])
        begin = done[now.numbers[first] - 1] if first else 0
        more.append(int(inner[np.abs(ends - begin - lengths[place] / 2).argmin()]))
    return sorted({*before, *more})


def _layers(program: Program, first: int, stop: int) -> Sequence[str]:
    """The layers that instructions are of."""
    return [each.name for each in program.layers if each.first < stop and each.stop > first]


def _told(names):
    """Layers, in words."""
    return f"Layer {names[0]}" + (f" to {names[-1]}" if len(names) > 1 else "") if names else "The program"
