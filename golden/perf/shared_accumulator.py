"""When rows are taken and accumulated where columns share an accumulator; see :mod:`golden.perf.cycles`.

Row r of a block of m rows is taken in cycle a(r), read in cycle i(r) and accumulated from g(r) on, ``share`` cycles;
i' and m' are of the block before, e' is the last cycle in which that one is accumulated::

    a(r) = max(a(r-1) + 1,  i'(r) + 1 if r < m' else e' + 1)
    i(r) = max(a(r) + through,  g(r-1) + share - 1)         e' instead of the latter for row 0
    g(r) = max(i(r) + 1,  s + min(r, n - 1) f + 2           if results of a command of n rows are read from s on)

and the last result is written ``turn`` cycles after the last column's turn begins. With as many passes in a block as
columns that share, or more, and 25 rows or so, nothing waits. Where a row takes two beats, a(r) is the second, a cycle
after the first.
"""


class SharedAccumulator:
    """The blocks of a run, one after the other.

    Parameters
    ----------
    share : int
        Columns that share an accumulator.
    through : int
        Cycles from a row's acceptance to the first in which its block sums can be read.
    turn : int
        Cycles from a column's turn to its result.
    leave : int
        Cycles f that a row of results takes to leave.

    Attributes
    ----------
    done : int
        Cycle in which the last block's last result is written.
    """

    def __init__(self, share: int, through: int, turn: int, leave: int = 1) -> None:
        self.share, self.through, self.turn, self.leave = share, through, turn, leave
        self.reads: list[int] = []
        self.end, self.done = -1, -1

    def block(self, start: int, rows: int, before: tuple[int, int] | None = None, beats: int = 1) -> tuple[int, int]:
        """Cycles in which the first and the last beat of a closing pass are taken.

        Parameters
        ----------
        start : int
            First cycle in which the pass could start.
        rows : int
            Rows of the pass.
        before : (int, int), optional
            If the block is its command's last: start of the read-out and rows of the command before.
        beats : int
            That a row takes, one after the other once there is room for it.
        """
        reads, taken, leaves = [], start - 1, self.end
        for row in range(rows):
            taken = max(taken + 1, self.reads[row] + 1 if row < len(self.reads) else self.end + 1)
            if row == 0:
                start = taken
            taken += beats - 1
            reads.append(max(taken + self.through, leaves))
            turn = reads[-1] + 1
            if before:
                turn = max(turn, before[0] + min(row, before[1] - 1) * self.leave + 2)
            leaves = turn + self.share - 1
        self.reads, self.end, self.done = reads, leaves, leaves + self.turn
        return start, taken
