"""Bands of rows: how large they are, how commands share them, and what of the next one comes in meanwhile."""

from collections.abc import Iterator

from ..boxes import ranges
from ..schedule import Span
from .passes import even


class Meanwhile:
    """Pieces of the next band, some of them behind each command of this one."""

    def __init__(self, pieces: Iterator[None], x: Span, share: float) -> None:
        self.pieces, self.x, self.share, self.due = pieces, x, share, 0.0

    def go_on(self) -> None:
        """Bring the share of a command."""
        self.due += self.share
        while self.due >= 1 and next(self.pieces, self) is not self:
            self.due -= 1

    def close(self) -> Span:
        """Bring what is left, and say where all of it is."""
        for _ in self.pieces:
            pass
        return self.x


def commands(count: int, part: int, most: int, step: int, side: int, columns: int, first: bool
             ) -> Iterator[tuple[int, int]]:
    """First row and rows of the commands of a band. The very first has few rows, if that costs little."""
    begin, few = 0, -(-side // step) * step
    left = count - few
    if first and few < part and left > 0 and (left >= side or columns * (side - left) < 2 * left):
        yield 0, few
        begin = few
        part = even(left, most, step)
    for at in range(begin, count, part):
        yield at, min(part, count - at)


def shares(wide: int, opens: bool, closes: bool, most: int) -> Iterator[tuple[int, int]]:
    """First column tile and column tiles, at most so many, of the commands of a group: one to begin with, and not all
    at the end.
    """
    sizes = [1, min(2, wide - 1), max(0, wide - 3)] if opens else [wide]
    if closes and sizes[-1] > 3:
        sizes[-1:] = [sizes[-1] - sizes[-1] // 2, sizes[-1] // 2]
    column = 0
    for size in filter(None, sizes):
        for first, count in ranges([size], most):
            yield column + first, count
        column += size


def band(rows: int, step: int, wanted: int, most: int, limit: int = 1 << 30) -> int:
    """Rows at a time: as many as wanted, at most ``most``, and whole blocks of ``step`` unless that is all."""
    wanted, most = min(max(wanted, step), limit), min(most, limit)
    if rows <= wanted:
        return rows
    if wanted > most:
        wanted = most
    return wanted // step * step
