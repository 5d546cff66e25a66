"""Write ``golden/spec/tables.json`` and print the error of every table: ``python -m golden.tables.generate``.

What the rows hold, for v in [0, 1) along a row and r the row within its table:

==========  =======================================================================================
exp2        2^v
recip       2 / m, m = 1 + (r + v) / 2
rsqrt       2 / sqrt(m), m = 1 + (r + v) / 2 in rows 0 and 1, twice that (r - 2) in rows 2 and 3
log         ln(1 + u) / u, u = v below ``LOG_SPLIT``/16 and (v - 1) / 2 from there on
tanh        tanh(v) / v
logistic    1 / (1 + exp(-a)), a = v in row 0 and (1 + v) 2^(r-1) in row r > 0
mills       2^(b+1) exp(a^2 / 2) (1 - Phi(a)), Phi the normal distribution function; a = v in row b = 0,
            1 + v in row b = 1, then two rows a binade [2^(b-1), 2^b), b = 2, 3, 4
==========  =======================================================================================

Every value is in (1/2, 2], so a fixed point of ``VALUE_BITS`` fraction bits is also a bound on the relative error.

Fit: interpolation at the Chebyshev nodes of a segment, whose error is h^(n+1) |f^(n+1)| / (2^(2n+1) (n+1)!), twice the
size of the minimax error at worst. The highest coefficient is rounded first and the lower ones are fitted again to
what is left, so its rounding error is mostly absorbed. mpmath computes with 40 digits and in pure Python: the file is
the same on every host, and ``tests/golden/test_tables.py`` regenerates it.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
from rich.console import Console
from rich.table import Table

from hbfp.golden.functions import horner
from hbfp.golden.spec.tables import EXP2, LOG_SPLIT, MAIN, ROWS, TableFormat

PATH = Path(__file__).parents[1] / "spec" / "tables.json"
DIGITS = 40


def _binade(row, v):
    """Argument of a table over [0, 32): row 0 is [0, 1), row r is [2^(r-1), 2^r)."""
    return v if row == 0 else (1 + v) * mp.mpf(2) ** (row - 1)


def _log(row, v):
    u = v if v * 16 < LOG_SPLIT else (v - 1) / 2
    return mp.log1p(u) / u if u else mp.mpf(1)


def _half(row, v):
    """Mantissa over two rows: [1, 3/2) and [3/2, 2)."""
    return 1 + (row + v) / 2


def _mills(row, v):
    binade = row if row < 2 else 1 + row // 2
    a = _binade(row, v) if row < 2 else mp.mpf(2) ** (binade - 1) * _half(row % 2, v)
    return mp.erfc(a / mp.sqrt(2)) * mp.exp(a * a / 2) * mp.mpf(2) ** binade


#: Exact function of every table, of (row, v).
FUNCTION = {
    "exp2": lambda row, v: mp.mpf(2) ** v,
    "recip": lambda row, v: 2 / _half(row, v),
    "rsqrt": lambda row, v: 2 / mp.sqrt(_half(row % 2, v) * 2 ** (row // 2)),
    "log": _log,
    "tanh": lambda row, v: mp.tanh(v) / v if v else mp.mpf(1),
    "logistic": lambda row, v: 1 / (1 + mp.exp(-_binade(row, v))),
    "mills": _mills,
}


def fit(function: Callable[[Any], Any], form: TableFormat) -> list[int]:
    """Rounded coefficients of ``function(tau)``, tau in [-1/2, 1/2), constant first."""
    result: list[Any] = []
    for degree in range(form.degree, -1, -1):
        count = degree + 1
        nodes = [mp.cos(mp.pi * (2 * i + 1) / (2 * count)) / 2 for i in range(count)]
        rest = [function(tau) - sum(c * tau ** (degree + 1 + i) for i, c in enumerate(result)) for tau in nodes]
        solution = mp.lu_solve(mp.matrix([[tau ** i for i in range(count)] for tau in nodes]), mp.matrix(rest))
        unit = mp.mpf(2) ** form.fraction[degree]
        result.insert(0, mp.nint(solution[degree] * unit) / unit)
    return [int(c * 2 ** bits) for c, bits in zip(result, form.fraction, strict=True)]


def positions(form: TableFormat, points: int) -> np.ndarray:
    """``points`` values of t spread over a segment, both ends included."""
    return np.linspace(-2 ** (form.position - 1), 2 ** (form.position - 1) - 1, points).astype(np.int64)


def errors(function: Callable[[Any], Any], segment: Sequence[int], form: TableFormat, points: int = 33) -> list[Any]:
    """Errors of one segment as the hardware computes it, relative to the exact value."""
    t = positions(form, points)
    got = horner([np.array(c, np.int64) for c in segment], t, form)
    exact = [function(mp.mpf(int(step)) / 2 ** form.position) for step in t]
    return [mp.mpf(int(value)) / 2 ** form.fraction[0] / want - 1 for value, want in zip(got, exact, strict=True)]


def segments(table: str, row: int, form: TableFormat) -> tuple[list[list[int]], float]:
    """Coefficients of one row and its largest relative error."""
    result, worst = [], mp.mpf(0)
    for index in range(2 ** form.index):
        def function(tau, index=index):
            return FUNCTION[table](row, (index + tau + mp.mpf(1) / 2) / 2 ** form.index)

        segment = fit(function, form)
        error = errors(function, segment, form)
        middle = (max(error) + min(error)) / 2 * function(mp.mpf(0))
        segment[0] -= int(mp.nint(middle * 2 ** form.fraction[0]))
        worst = max(worst, *map(abs, errors(function, segment, form)))
        result.append(segment)
    return result, float(worst)


def generate() -> tuple[dict[str, list[list[int]]], list[tuple[str, int, float]]]:
    """Contents of ``tables.json``, and (table, row, largest relative error) of every row."""
    data: dict[str, list[list[int]]] = {"exp2": [], "main": []}
    report = []
    with mp.workdps(DIGITS):
        for name, form, tables in (("exp2", EXP2, (("exp2", 1),)), ("main", MAIN, ROWS)):
            for table, rows in tables:
                for row in range(rows):
                    part, worst = segments(table, row, form)
                    data[name] += part
                    report.append((table, row, worst))
    return data, report


def dump(data: dict[str, list[list[int]]]) -> str:
    """The file's text: one segment a line."""
    tables = (f'"{name}": [\n' + ",\n".join(json.dumps(segment) for segment in rows) + "\n]"
              for name, rows in data.items())
    return "{\n" + ",\n".join(tables) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m golden.tables.generate", description=__doc__.splitlines()[0],
                                     epilog="example: python -m golden.tables.generate --check")
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    args = parser.parse_args()
    data, report = generate()
    if args.check and PATH.read_text(encoding="ascii") != dump(data):
        parser.error(f"{PATH} differs from what this program writes")
    if not args.check:
        PATH.write_text(dump(data), encoding="ascii")
    table = Table("table", "row", "relative error, log2")
    for name, row, worst in report:
        table.add_row(name, str(row), f"{np.log2(worst):.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
