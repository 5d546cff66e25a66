"""Piecewise polynomials of the FP32 functions, as data: formats, row map, constants.

The coefficients themselves are in ``tables.json``; ``python -m golden.tables.generate`` writes that file and
prints its error analysis. Contract of the whole datapath: ``docs/design/03-functions.md``.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hbfp.system import FUNCTIONS as FUNCTIONS

#: Fraction bits of a polynomial's value, of the exponent 2^-k * 2^f (f), and of the final sum.
VALUE_BITS = 28
EXPONENT_BITS = 28
FINAL_BITS = 30
#: log2(e) with 34 fraction bits and ln(2) with 30: nearest integers.
LOG2E_BITS = 34
LOG2E = 24785312075
LN2 = 744261118
#: ln splits m in [1, 2) at 1 + 3/8: below it u = m - 1, from there on u = m/2 - 1.
LOG_SPLIT = 6      # sixteenths


@dataclass(frozen=True)
class TableFormat:
    """Fixed-point form of one table of polynomials sum(c[i] * tau^i), tau in [-1/2, 1/2) of a segment.

    Parameters
    ----------
    index : int
        Address bits within a row: a row is 2^index segments.
    position : int
        Bits of the position inside a segment; tau = t / 2^position, t two's complement.
    fraction : tuple of int
        Fraction bits of each coefficient, constant first.
    used : tuple of int
        Bits of tau, from the top, that multiply in each Horner step, constant first.
    """
    index: int
    position: int
    fraction: tuple[int, ...]
    used: tuple[int, ...]

    @property
    def degree(self) -> int:
        """Degree of the polynomials."""
        return len(self.fraction) - 1

    @property
    def word(self) -> int:
        """Bits of index and position together: the argument of a row."""
        return self.index + self.position


#: 2^f, f in [0, 1): one row.
EXP2 = TableFormat(index=6, position=22, fraction=(28, 28, 26), used=(22, 13))
#: All other tables: 16 segments a row.
MAIN = TableFormat(index=4, position=20, fraction=(28, 28, 27, 26), used=(20, 17, 12))

#: Rows of MAIN in address order: (table, rows). What a row holds: ``golden/tables/generate.py``.
ROWS = (("recip", 2), ("rsqrt", 4), ("log", 1), ("tanh", 1), ("logistic", 6), ("mills", 8))
#: Tables of MAIN that a function reads.
USES = {"exp": (), "log": ("log",), "recip": ("recip",), "rsqrt": ("rsqrt",), "tanh": ("tanh", "logistic"),
        "sigmoid": ("logistic",), "silu": ("logistic",), "gelu": ("mills",), "normcdf": ("mills",)}


def first_row(table: str) -> int:
    """Address of the first row of ``table`` in MAIN."""
    row = 0
    for name, rows in ROWS:
        if name == table:
            return row
        row += rows
    raise ValueError(f"Table must be one of {', '.join(name for name, _ in ROWS)}, not {table!r}")


@cache
def coefficients(name: str) -> tuple[tuple[int, ...], ...]:
    """Coefficients of table ``exp2`` or ``main``.

    Returns
    -------
    tuple of tuple of int
        One tuple a segment in address order, constant first; fraction bits as in the format.
    """
    with open(Path(__file__).with_name("tables.json"), encoding="ascii") as file:
        data = json.load(file)
    return tuple(tuple(segment) for segment in data[name])
