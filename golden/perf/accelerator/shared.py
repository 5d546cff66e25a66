"""When rows are accumulated where columns share an accumulator, cycle by cycle.

Twin of ``rtl/accumulate/shared_control.py``.
"""

import numpy as np

from hbfp.design import Design

from .record import Record, made, part, record

#: Most cycles from a row to the first in which its block sums can be read.
_LINE = 1024
_PAIR = (np.int64, (2,))

STATE = record(
    # Columns that share an accumulator, 1: none do; cycles from a row to its sums, and from a turn to its result.
    "columns through result "
    # Rows whose sums are there; the next one of the block, the one that is accumulated, and its column; blocks that
    # have begun and are not over; place in the line.
    "waiting following place column blocks at",
    # A row is accumulated.
    "active",
    # Of each block: its rows, whether it is its command's last, and the command's bank. Rows on their way.
    rows=_PAIR, last=_PAIR, bank=_PAIR, line=(np.int64, (_LINE,)))


def fresh(design: Design, latency: dict[str, int]) -> Record:
    """The state at reset; ``latency`` is the manifest's."""
    if design.share == 1:
        return made(STATE, columns=1)
    through = latency["array"] + latency["accumulate"] - design.share - latency["turn"] - 1
    assert through < _LINE
    return made(STATE, columns=design.share, through=through, result=latency["turn"])


@part
def room(s: Record, row: int) -> bool:
    """Whether a row of a pass that closes a block may come: of two blocks at most, to the word of one that is read."""
    before = s.blocks - (row != 0)
    return before == 0 or (before == 1 and row < s.following)


@part
def step(s: Record, takes: bool, row: int, rows: int, last: bool, bank: int, vacant: bool, ending: bool) -> int:
    """The end of a cycle; the bank of a command whose last sum begins to be added, or -1.

    Parameters
    ----------
    s : Record
    takes, row, rows, last, bank
        Whether a row of a pass that closes a block is taken; which of how many; whether the block is its command's
        last, and the command's bank.
    vacant, ending
        Whether the result of the row that is accumulated may be written; whether a command's last result is still to
        be.
    """
    closed = s.line[s.at]
    s.line[s.at] = 0
    s.line[(s.at + s.through) % _LINE] = takes
    s.at = (s.at + 1) % _LINE
    go = s.active and (s.last[0] == 0 or (vacant and not ending))
    leaves = go and s.column == s.columns - 1
    over = leaves and s.place == s.rows[0] - 1
    read = s.waiting != 0 and (not s.active or leaves)
    turned = -1
    if over:
        if s.last[0]:
            turned = s.bank[0]
        s.rows[0], s.last[0], s.bank[0] = s.rows[1], s.last[1], s.bank[1]
        s.blocks -= 1
    s.waiting += closed - read
    s.active = read or (s.active and not leaves)
    s.column = 0 if leaves else s.column + go
    if read:
        s.place = 0 if over else s.following
        s.following = s.place + 1
    elif over:
        s.following = 0
    if takes and row == 0:
        s.rows[s.blocks], s.last[s.blocks], s.bank[s.blocks] = rows, last, bank
        s.blocks += 1
    return turned
