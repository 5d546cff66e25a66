"""Area of the FP32 functions, combinational, `area` recipe on OSU018: ``python -m benchmarks.functions_area``.

Needs the cell library: ``python -m synth fetch``. A function takes Yosys minutes; results are cached under build/.
"""

import argparse

from rich.console import Console
from rich.progress import track
from rich.table import Table

from golden.spec.tables import FUNCTIONS
from hbfp.design import Design
from synth.measure.area import measure
from synth.tools import library


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.functions_area", description=__doc__.splitlines()[0],
                                     epilog="example: python -m benchmarks.functions_area exp recip")
    parser.add_argument("functions", nargs="*", metavar="function", help=f"of {', '.join(FUNCTIONS)}; default all")
    args = parser.parse_args()
    for name in args.functions:
        if name not in FUNCTIONS:
            parser.error(f"function must be one of {', '.join(FUNCTIONS)}, not {name!r}")
    cells = library.default()
    if cells is None:
        parser.error("no cell library: run `python -m synth fetch` first")
    table = Table("function", "NAND2-equivalents")
    for name in track(args.functions or FUNCTIONS, "measuring", transient=True):
        table.add_row(name, f"{measure(Design(), 'area', cells, f'fp32.{name}').whole.area:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
