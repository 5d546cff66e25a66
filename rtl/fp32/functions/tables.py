"""Both tables: 2^f, and the main one of all other functions, each a polynomial on every segment."""

from amaranth import Cat, Const

from hbfp.functions import EXPONENTIAL
from hbfp.golden.spec.tables import EXP2, MAIN, ROWS, USES, coefficients, first_row

from ..polynomial import Polynomial
from ..raw import named
from .logarithm import log_argument


def row_counts(path):
    """Rows of the tables that this set of functions reads."""
    used = {table for name in path.need for table in USES[name]}
    return {table: rows for table, rows in ROWS if table in used}


def row_of(path, table):
    """First row of ``table`` among those that this set of functions reads."""
    row = 0
    for name, rows in row_counts(path).items():
        if name == table:
            return row
        row += rows
    return 0


def evaluate_tables(path):
    """E and B."""
    m, live = path.m, path.live
    tables = {}
    if path.need & EXPONENTIAL:
        tables["e"] = Polynomial(m, EXP2, coefficients("exp2"), "e", path.multiplier), live.pop("f"), None
    if path.need != {"exp"}:
        main = coefficients("main")
        segments = [main[i] for table, rows in row_counts(path).items()
                    for i in range(first_row(table) << MAIN.index, first_row(table) + rows << MAIN.index)]
        tables["b"] = Polynomial(m, MAIN, segments, "b", path.multiplier), live["word"], live.pop("row")
    pending = {}
    for name, (table, word, row) in tables.items():
        pending[name] = table
        live[f"{name}_word"], live[f"{name}_row"] = word, row if row is not None else Const(0, 1)
    live.pop("word", None)
    log_argument(path)
    path.cut("reduce")
    for name, table in pending.items():
        word, row = live.pop(f"{name}_word"), live.pop(f"{name}_row")
        address = word[table.form.position:]
        address = address if isinstance(row, Const) else Cat(address, row)
        live[f"{name}_t"] = table.position(word)
        live |= {f"{name}_c{i}": c for i, c in enumerate(table.rom(named(m, address, f"{name}_address")))}
    path.cut("rom")
    for name, table in pending.items():
        live[f"{name}_value"] = live.pop(f"{name}_c{table.form.degree}")
    for degree, cut in ((2, "cubic"), (1, "quadratic"), (0, "linear")):
        for name, table in pending.items():
            if degree < table.form.degree:
                live[f"{name}_value"] = table.step(degree, live[f"{name}_value"], live.pop(f"{name}_c{degree}"),
                                                   live[f"{name}_t"])
                if degree == 0:
                    live.pop(f"{name}_t")
        path.cut(cut)
