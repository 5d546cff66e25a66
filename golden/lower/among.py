"""Two lists of instructions as one: how long each instruction keeps its unit, and which of another list it needs."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from math import prod

import numpy as np

from hbfp.isa.instructions import Opcode

from .schedule import Emission

#: Fields whose product are the cycles of an instruction.
_LOOPS = {Opcode.MULTIPLY: ("passes0", "passes1", "passes2", "rows0", "rows1", "columns"),
          Opcode.LOAD: ("count0", "count1", "count2"), Opcode.STORE: ("count0", "count1", "count2")}


def cycles(each: Emission) -> int:
    """About how long an instruction keeps the array, the vector unit or the bus."""
    return prod(each.values.get(name, 1) for name in _LOOPS[each.opcode]) if each.opcode in _LOOPS else 0


def cost(emissions: Iterable[Emission]) -> int:
    """The same of all together; of products the array's, which is more than the bus's."""
    return sum(map(cycles, emissions))


def among(first: Sequence[Emission], second: Sequence[Emission], needs: Iterable[int] = repeat(0)) -> list[Emission]:
    """Two lists as one, each in its order, so that both go on alike; each of the second behind so many of the first as
    it ``needs``.
    """
    starts = _starts(first)
    merged, place = list[Emission](), 0
    for each, start, needed in zip(second, _starts(second), needs, strict=False):
        until = max(place, needed, bisect_right(starts, start))
        merged += [*first[place:until], each]
        place = until
    return [*merged, *first[place:]]


def followed(first: Sequence[Emission], second: Sequence[Emission]) -> list[Emission]:
    """The same where what the second shares with the first, and one of them writes, comes behind."""
    return among(first, second, _needs(first, second))


def _starts(emissions):
    """The share of the time that is over before each."""
    costs = list(map(cycles, emissions))
    total = max(sum(costs), 1)
    return [done / total for done in list(accumulate(costs, initial=0))[:-1]]


def _needs(first, second) -> Iterator[int]:
    """How many of the first each of the second has to follow."""
    spans: dict[str, list[tuple[int, int, int, bool]]] = {}
    for number, each in enumerate(first, 1):
        for span, writes in _used(each):
            spans.setdefault(span.memory, []).append((span.start, span.stop, number, writes))
    known = {memory: np.array(each, np.int64).T for memory, each in spans.items()}
    for each in second:
        needs = 0
        for span, writes in _used(each):
            if span.memory in known:
                starts, stops, numbers, written = known[span.memory]
                met = numbers[(starts < span.stop) & (stops > span.start) & ((written > 0) | writes)]
                needs = max(needs, int(met.max(initial=0)))
        yield needs


def _used(each):
    return [*((span, False) for span in each.reads), *((span, True) for span in each.writes)]
