"""What of a job's instructions waits for what, in whatever order they are to stand.

Whatever reads or writes the same addresses keeps its order, and so do commands of the core, and parts of a program of
the vector unit.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hbfp.isa.instructions import Opcode

from .schedule import Emission
from .yields import followed


@dataclass
class Task:
    """An instruction: the cycles that it keeps its unit, those until others see what it does, and words that it moves
    by what units share; what it waits for, to be done or to have begun; those that wait for it; and the VECTOR that has
    to follow it at once.
    """
    cycles: int
    lag: int
    moves: dict[str, int]
    done: set[int] = field(default_factory=set)
    begun: set[int] = field(default_factory=set)
    behind: list[int] = field(default_factory=list)
    next: int | None = None


def wait(tasks: Sequence[Task], emissions: Sequence[Emission], words: Sequence[Any], longest: int) -> None:
    """Write into tasks, one of each emission, what they wait for.

    Parameters
    ----------
    tasks : sequence of Task
        In the order in which the program has them.
    emissions : sequence of Emission
    words : sequence
        Of each VECTOR the words of its program.
    longest : int
        Elements of a row before a program says how many it has.
    """
    _same_addresses(tasks, emissions)
    _commands(tasks, emissions)
    _completed(tasks, emissions)
    _together(tasks, emissions, words, longest)


@dataclass
class _Product:
    """A command of the core: tiles of each column, columns to come, tiles that open parts have taken, and parts that
    are not done, (number, passes).
    """
    tiles: int
    columns: int
    taken: int = 0
    parts: list[tuple[int, int]] = field(default_factory=list)
    ended: bool = False


def _same_addresses(tasks, emissions):
    """What reads or writes addresses waits for those that wrote them before, and who writes them for who read them."""
    memories = {}
    for place, each in enumerate(emissions):
        for span, writes in (*((span, False) for span in each.reads), *((span, True) for span in each.writes)):
            starts, pieces = memories.setdefault(span.memory, ([0], [[None, ()]]))
            first, last = (_cut(starts, pieces, address) for address in (span.start, span.stop))
            for writer, readers in pieces[first:last]:
                tasks[place].done |= {writer, *(readers if writes else ())} - {None, place}
            if writes:
                starts[first:last], pieces[first:last] = [span.start], [[place, ()]]
            else:
                for piece in pieces[first:last]:
                    piece[1] = (*piece[1], place)


def _cut(starts, pieces, address):
    """The number of the piece that begins at an address."""
    place = bisect_left(starts, address)
    if place == len(starts) or starts[place] != address:
        place = bisect_right(starts, address)
        starts.insert(place, address)
        pieces.insert(place, list(pieces[place - 1]))
    return place


def _commands(tasks, emissions):
    """Weights, rows and results of commands keep their order among each other, so that no queue holds more of them."""
    core = [place for place, each in enumerate(emissions) if each.opcode in (
        Opcode.WEIGHTS, Opcode.MULTIPLY, Opcode.DRAIN)]
    for before, place in pairwise(core):
        tasks[place].begun |= {before} - tasks[place].done


def _completed(tasks, emissions):
    """What waits until the core is done with an instruction comes behind those that it needs for that.

    Weights are done when products have taken them, a product when its results are: neither may wait for what stands
    behind one that waits for it.
    """
    needs = dict[int, int]()                               # the core's instruction with which each is done
    weights, products, drains = deque(), deque(), deque()  # [number, tiles], _Product, [number, columns]

    def take(count):
        while count and weights:
            most = min(count, weights[0][1])
            weights[0][1] -= most
            count -= most
            if not weights[0][1]:
                needs[weights.popleft()[0]] = place

    for place, each in enumerate(emissions):
        f = each.values
        match each.opcode:
            case Opcode.WEIGHTS:
                weights.append([place, f["tiles"] * f["repeats"]])
            case Opcode.MULTIPLY:
                if f.get("first"):
                    products.append(_Product(f["tiles"], f["columns"]))
                products[-1].parts.append((place, f["passes0"] * f["passes1"] * f["passes2"]))
                products[-1].ended = bool(f.get("last"))
            case Opcode.DRAIN:
                drains.append([place, f["columns"]])
            case _:
                continue
        while products and products[0].ended and drains:
            product, drain = products[0], drains[0]
            columns = min(product.columns, drain[1])
            missing = columns * product.tiles - product.taken
            if sum(left for _, left in weights) < missing:
                break
            take(missing)
            product.taken, product.columns, drain[1] = 0, product.columns - columns, drain[1] - columns
            if not drain[1]:
                needs[drains.popleft()[0]] = place
            if not product.columns:
                needs |= {part: place for part, _ in products.popleft().parts}
        if products and not products[0].ended:             # of one that is open, parts whose weights are there
            parts = products[0].parts
            while parts and sum(left for _, left in weights) >= parts[0][1]:
                part, passes = parts.pop(0)
                take(passes)
                products[0].taken += passes
                needs[part] = place
    for place, task in enumerate(tasks):
        task.begun |= {needs[each] for each in task.done if each in needs} - task.done - {place}


def _together(tasks, emissions, given, longest):
    """A VECTOR that reads what one before it left in the unit follows it at once; the first of several waits for all
    that the others need and that does not need it.
    """
    writer, groups, length, uses = {}, [], longest, None
    for place, each in enumerate(emissions):
        if each.opcode != Opcode.VECTOR:
            continue
        uses, length = followed(given[place], length)
        first = min((writer[what] for what in uses.reads if what in writer), default=len(groups))
        groups[first:] = [[member for group in groups[first:] for member in group] + [place]]
        writer = {what: min(group, first) for what, group in writer.items()} | dict.fromkeys(uses.writes, first)
    for first, *others in groups:
        needs = {first}
        for place in range(first + 1, (others or [first])[-1] + 1):
            task = tasks[place]
            if place in others or not needs.isdisjoint(task.done | task.begun):
                needs.add(place)
        wanted = set(others)                               # and what these need of what needs the first
        for place in range((others or [first])[-1], first, -1):
            if place in wanted:
                needed = tasks[place].done | tasks[place].begun
                wanted |= needed & needs - {first}
                tasks[first].done |= needed - needs
        for before, place in zip([first, *others], others, strict=False):
            tasks[before].next = place
            tasks[place].done.add(before)
