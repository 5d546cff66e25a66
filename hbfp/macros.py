"""What a memory takes as macros of a memory compiler, by its words, width and ports.

The sizes are those of the compiled memories that the open 130 nm kit SG13G2 ships, over the area of its own NAND2, so
that they stand beside logic in NAND2-equivalents. Their widths and heights follow a law of rows and columns of cells,
which ``docs/figures/macros.json`` has beside the macros themselves; within their largest and smallest sizes it gives
any other. A large memory of one port takes 0.49 NAND2-equivalents a bit there, and 0.5 by what is published of 75 MB
in 28 nm (``sram_um2`` of the price book). Its memories of two ports read and write at both, so they are more than the
one write and one read port of :mod:`hbfp.rtl.lib.memory` need: the price is an upper bound.
"""

from dataclasses import dataclass
from functools import cache

from .figures import figure

#: Rows and columns of cells of the smallest macros.
LEAST_ROWS, LEAST_COLUMNS = 16, 32
#: Columns of cells from strap to strap, and the rows up to which a macro is short.
STRAP, SHORT = 128, 64
#: Columns of cells that share one bit of a word.
MUXES = (4, 8, 16)


@dataclass(frozen=True)
class Memory:
    """How a memory is built.

    Attributes
    ----------
    area : float
        NAND2-equivalents.
    macros : int
        How many macros there are; 0 where it is made of flip-flops.
    words, width : int
        Words of a macro and bits of a word.
    """
    area: float
    macros: int
    words: int
    width: int


def size(words: int, width: int, mux: int, ports: int) -> tuple[float, float]:
    """Width and height of a macro in micrometres of the 130 nm kit."""
    law = figure(f"macros.law.p{ports}")
    rows, columns = words // mux, width * mux
    straps = max(0, columns // STRAP - 1)
    return (law["x"] + law["column"] * columns + law["strap"] * straps + law["short"] * (rows <= SHORT),
            law["y"] + law["row"] * rows - law["lower"] * (mux > MUXES[0]))


@cache
def memory(words: int, width: int, ports: int = 2) -> Memory:
    """The smallest way to build a memory.

    Parameters
    ----------
    words, width : int
        Words and bits of a word, each at least 1.
    ports : int
        1: a read or a write a cycle; 2: both.
    """
    law, nand2 = figure(f"macros.law.p{ports}"), figure("macros.nand2_um2")
    ways = [Memory(words * width * figure("prices.areas.register_bit")["value"], 0, words, width)]
    for mux in (mux for mux in MUXES if mux <= law["mux"]):
        most_words, most_width = law["rows"] * mux, law["columns"] // mux
        around = law["y"] - law["lower"] * (mux > MUXES[0])
        strapped = law["column"] * mux + law["strap"] * (law["columns"] // STRAP - 1)
        for deep in _parts(words, most_words, law["row"], around):
            for wide in _parts(width, most_width, strapped, law["x"]):
                rows = max(LEAST_ROWS, -(-words // (deep * mux)))
                bits = max(LEAST_COLUMNS // mux, -(-width // wide))
                x, y = size(rows * mux, bits, mux, ports)
                ways.append(Memory(deep * wide * x * y / nand2, deep * wide, rows * mux, bits))
    return min(ways, key=lambda way: way.area)


def _parts(whole: int, most: int, saved: float, around: float) -> range:
    """Numbers of equal parts that may be the best: from the least that there can be.

    A part more costs what a macro has ``around`` its cells. Smaller parts save at most ``saved`` each: a row or a bit,
    by which the parts together are larger than the whole, and straps.
    """
    least = -(-whole // most)
    return range(least, least + int(least * saved / around) + 1)
