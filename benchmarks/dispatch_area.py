"""Area of the request dispatcher over that of the 32 x 32 HBFP8 core, without memories.

    python -m synth fetch
    python -m benchmarks.dispatch_area
"""

from rich.console import Console
from rich.table import Table

from hbfp.design import Design
from synth.measure.area import measure
from synth.tools import library

#: Of the core: published for the controller of an accelerator with two contexts, MICRO 2021.
LIMIT = 0.01


def main():
    """Measure and print."""
    cells = library.default()
    if cells is None:
        raise SystemExit("no cell library: run `python -m synth fetch` first")
    design = Design(multiplier="recoded")
    core = measure(design, "area", cells).scopes()["core"] * design.rows * design.cols
    dispatch = measure(Design(), "area", cells, "dispatch").whole.area
    table = Table("", "NAND2-equivalents", "share", "limit")
    table.add_row(design.name, f"{core:,.0f}", "", "")
    table.add_row("dispatcher, 256 requests", f"{dispatch:,.0f}", f"{dispatch / core:.2%}", f"{LIMIT:.0%}")
    Console().print(table)


if __name__ == "__main__":
    main()
