"""Nested loops over rows, cut into linear ranges, and ranges into boxes that loads and stores can do."""

from collections.abc import Iterator, Sequence
from math import lcm, prod

Loops = Sequence[tuple[int, int]]


def joint(operands: Sequence[Loops]) -> list[list[tuple[int, int]]]:
    """(size, stride) of nested loops, outermost first, merged where all operands allow it."""
    found: list[list[tuple[int, int]]] = [[] for _ in operands]
    for level in zip(*operands, strict=True):
        size = level[0][0]
        if size == 1:
            continue
        if found[0] and all(own[-1][1] == size * stride for own, (_, stride) in zip(found, level, strict=True)):
            for own, (_, stride) in zip(found, level, strict=True):
                own[-1] = own[-1][0] * size, stride
        else:
            for own, pair in zip(found, level, strict=True):
                own.append(pair)
    return found


def ranges(sizes: Sequence[int], most: int, step: int = 1) -> Iterator[tuple[int, int]]:
    """Cut rows into ranges of at most ``most``: the first row of each and how many; whole inner loops where they fit.

    All ranges but the last are multiples of ``step``; ``most`` must be one, too, unless one range holds all rows.
    """
    rows, inside = prod(sizes), 1
    for size in reversed(sizes):
        if inside * size > most:
            break
        inside *= size
    whole = lcm(inside, step)
    usual = most // whole * whole if whole <= most else most
    for first in range(0, rows, usual):
        yield first, min(usual, rows - first)


def boxes(operands: Sequence[Loops], first: int, count: int
          ) -> Iterator[tuple[int, list[int], list[list[tuple[int, int]]]]]:
    """Rows ``first`` to ``first + count - 1`` as boxes.

    Each is the number of rows in the boxes before it and, for each operand, the elements to skip and the loops.
    """
    yield from _boxes([list(each) for each in operands], first, count, 0, [0] * len(operands))


def _boxes(operands, first, count, done, skips):
    if not operands[0]:
        yield done, skips, [[] for _ in operands]
        return
    inside = prod(size for size, _ in operands[0][1:])
    while count:
        index, within = divmod(first, inside)
        moved = [skip + index * each[0][1] for skip, each in zip(skips, operands, strict=True)]
        if within or count < inside:
            part = min(count, inside - within)
            yield from _boxes([each[1:] for each in operands], within, part, done, moved)
        else:
            part = count // inside * inside
            yield done, moved, [[(part // inside, each[0][1]), *each[1:]] for each in operands]
        first, count, done = first + part, count - part, done + part
