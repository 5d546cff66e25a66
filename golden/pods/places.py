"""Where tiles lie in their banks."""

import heapq
from collections import defaultdict

from hbfp.program import ProgramError

from .program import Spot


class Shelf:
    """Places for tiles of equal height in the banks of one kind.

    Parameters
    ----------
    what : str
        What lies there, for messages.
    depth, rows : int
        Rows of a bank; rows of a tile.
    """

    def __init__(self, what: str, depth: int, rows: int) -> None:
        self.what, self.depth, self.rows = what, depth, rows
        self.count: dict[int, int] = defaultdict(int)
        self.free: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def take(self, bank: int, now: int = 0) -> Spot:
        """A place in a bank that is free in round ``now``: one last read in an earlier round, or a new one.

        Raises
        ------
        ProgramError
            If the bank has no row left for it.
        """
        free = self.free[bank]
        if free and free[0][0] < now:
            return Spot(bank, heapq.heappop(free)[1])
        address = self.count[bank] * self.rows
        self.count[bank] += 1
        if address + self.rows > self.depth:
            raise ProgramError(f"Bank of {self.depth} rows must hold {self.count[bank]} tiles of {self.rows} rows of "
                               f"{self.what} at once")
        return Spot(bank, address)

    def give(self, spot: Spot, last: int) -> None:
        """Give back a place that is last read in round ``last``."""
        heapq.heappush(self.free[spot.bank], (last, spot.address))
