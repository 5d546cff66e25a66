"""``python -m synth netlist``: a design after mapping, as Verilog with the same top, ports and manifest."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hbfp import files
from hbfp.command import Parser, run
from hbfp.design import Design
from hbfp.manifest import FILE
from hbfp.options import add_design_options
from hbfp.values import make_folder, writable_folder

from ..measure.mapped import mapped_netlist
from ..tools.errors import FAILURES
from ..tools.library import Library
from .options import add_flow_options, check_unit, choose_target, jobs, least_area

EXAMPLES = """\
examples:
  python -m synth netlist --rows 8 --recipe generic --out build/gates
  python -m synth netlist --unit encode --mantissa 6        with the cells of OSU018, if they are fetched
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth netlist", epilog=EXAMPLES,
                    description="The mapped netlist of a design, for simulation: same top, ports and manifest.")
    add_design_options(parser)
    add_flow_options(parser)
    parser.add_argument("--unit", metavar="NAME", default="core", help="a part alone, as python -m gen --unit")
    parser.add_argument("--out", metavar="DIR", help="folder for the files (default: build/netlist/NAME)")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    check_unit(args.unit)
    design, processes = least_area(args), jobs(args)
    recipe, library = choose_target(args.recipe, args.liberty)
    folder = files.output("netlist", design.name if args.unit == "core" else args.unit)
    folder = writable_folder("out", folder if args.out is None else args.out)
    return partial(work, design, args.unit, recipe, library, processes, folder)


def work(design: Design, unit: str, recipe: str, library: Library | None, processes: int, folder: Path) -> None:
    """Map a design or a part, write both files, say so."""
    text, manifest = mapped_netlist(design, unit, recipe, library, processes)
    make_folder("out", folder)
    files.write(folder / manifest.verilog, text)
    files.write(folder / FILE, manifest.text())
    print(f"{folder / manifest.verilog}: {text.count('endmodule')} modules, top {manifest.top}, "
          f"recipe {recipe}")


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
