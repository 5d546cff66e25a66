"""Tables that a benchmark prints, as data: what its option ``--json`` writes."""

from argparse import ArgumentParser
from pathlib import Path

from rich.table import Table

from hbfp import files


def add_json(parser: ArgumentParser) -> None:
    """Add the option ``--json``."""
    parser.add_argument("--json", type=Path, help="also write the rows of the tables there")


def number(cell: str) -> float | int | str:
    """A cell as a number, a percentage as a share; what is none as it is."""
    text = cell.replace(",", "")
    for make in (int, float, lambda word: float(word.removesuffix("%")) / 100):
        try:
            return make(text)
        except ValueError:
            pass
    return cell


def write(path: Path | None, *tables: Table) -> None:
    """Write the rows of tables, head -> cell, into one list; nothing without a path."""
    if path is not None:
        files.write_json(path, [
            {str(column.header): number(cell) for column, cell in zip(table.columns, cells, strict=True)}
            for table in tables for cells in zip(*(column.cells for column in table.columns), strict=True)])
