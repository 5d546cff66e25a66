"""Two lists of instructions as one: how long each instruction keeps its unit, and which of another list it needs."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
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


def followed(first: Sequence[Emission], second: Sequence[Emission]) -> list[Emission]:
    """Two lists as one, each in its order, so that both go on alike, and what the second shares with the first, where
    one of them writes it, comes behind.
    """
    starts, done = list[float](), 0
    total, whole = max(cost(first), 1), max(cost(second), 1)
    for each in first:
        starts.append(done / total)
        done += cycles(each)
    merged, place, share = list[Emission](), 0, 0
    for each, needs in zip(second, _needs(first, second), strict=True):
        until = max(place, needs, bisect_right(starts, share / whole))
        merged += [*first[place:until], each]
        place, share = until, share + cycles(each)
    return [*merged, *first[place:]]


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
