"""Taps of a weight whose column tiles lie one behind the other: for a product that takes a column tile at a time.

Where rows of K have the words of all column tiles side by side, each word of one is a burst of its own every time that
it comes. A copy that is made anyway has them in the other order.
"""

from collections.abc import Sequence

from ..apart import set_apart
from ..builder import Builder
from ..memory import Value


class Tiles:
    """The matrix (taps O, C) of some taps of a weight, tap by tap, each filled up to ``high`` rows; a copy is made.

    Parameters
    ----------
    build : Builder
    own : Value
        The weight (O, C, kh, kw), of which C is whole words.
    taps : sequence of (int, int)
        Rows and columns of the kernel.
    high : int
        Rows of a tap.
    """

    def __init__(self, build: Builder, own: Value, taps: Sequence[tuple[int, int]], high: int) -> None:
        outs, channels, lanes = own.shape[0], own.shape[1], build.lanes
        tiles = channels // lanes
        copied = build.dram.empty((tiles, len(taps) * high, lanes))
        build.dram.zeros(copied.home)
        self.where, self.home = copied.where, copied.home
        for number, (y, x) in enumerate(taps):
            rows = copied.where[:, number * high:number * high + outs]

            def place(word, first, rows=rows):
                return Value(rows[word][None, :, None], copied.home)
            set_apart(build, Value(own.where[:, :, y, x].t()[None, :, :, None], own.home), 1, place)

    def load(self, build: Builder, row: int, rows: int, word: int, words: int, target: int) -> None:
        """Load words ``word`` on, ``words`` of them, of ``rows`` rows from ``row`` on to V, from ``target`` on."""
        for number in range(words):
            address = self.where[word + number, row].storage_offset()
            build.words(address, 1, [(rows, build.lanes, words)], target + number)
