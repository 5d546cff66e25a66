"""``python -m synth power``: the energy of a multiply-accumulate, from mapped gates with a workload's operands."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hbfp import files
from hbfp.command import Parser, run
from hbfp.design import PIPELINES, Design
from hbfp.options import add_design_options
from hbfp.values import choice, make_folder, number, several, writable_file, writable_folder, writing

from ..compare import energy
from ..power import liberty
from ..report import energy as report
from ..report.plots import save
from ..tools import recipes
from ..tools.errors import FAILURES
from ..tools.library import Library
from .core import PERIOD_RANGE
from .options import (
    WIRE_RANGE,
    add_flow_options,
    baselines,
    choose_target,
    jobs,
    least_area,
    make_console,
    mover,
    progress_bar,
)

EXAMPLES = """\
examples:
  python -m synth power                                    normal numbers on 32 x 32, against FP32, BF16 and integers
  python -m synth power --workload resnet20 --mantissa 6   what its layers multiply
  python -m synth power --workload digits --against '' --rows 8 --block 1,8
  python -m synth power --period 20 --wire 2 --pipelines 2,3,4
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth power", epilog=EXAMPLES,
                    description="Energy of a multiply-accumulate: mapped gates are simulated with the library's delays "
                    "while they compute a workload's products, glitches counted, and every result is compared.")
    add_design_options(parser)
    add_flow_options(parser)
    parser.add_argument("--workload", metavar="NAME", default="gaussian", help="gaussian, digits, a model of the zoo "
                        "of python -m golden perf, or FILE.py (default: gaussian)")
    parser.add_argument("--period", metavar="NS", help="clock period in ns that all cores meet, {:g} to {:g} (default: "
                        "the longest path of the core)".format(*PERIOD_RANGE))
    parser.add_argument("--wire", metavar="FF", default="0", help="capacitance of wire in fF for each pin that a gate "
                        "drives, {} to {} (default: 0)".format(*WIRE_RANGE))
    parser.add_argument("--against", metavar="NAMES", default="fp32,bf16,int", help="other numbers (default: "
                        "fp32,bf16,int; '' for none)")
    parser.add_argument("--pipelines", metavar="NUMBERS", help="registers inside the multiply-adds of floats that are "
                        "tried, the least energy counts (default: {})".format(", ".join(
                            f"{name} {count}" for name, count in energy.LEAST.items())))
    parser.add_argument("--out", metavar="DIR", help="folder of power.json and the picture (default: build/NAME)")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    design, processes = least_area(args), jobs(args)
    if args.recipe is not None:
        choice("recipe", args.recipe, recipes.CELL_RECIPES)
    recipe, library = choose_target(args.recipe or "area", args.liberty)
    assert library is not None, "a recipe with cells has a library"
    liberty.read(library.path)    # says so if it has no tables of power
    period = None if args.period is None else number("period", args.period, *PERIOD_RANGE)
    wire = number("wire", args.wire, *WIRE_RANGE)
    depths = [str(depth) for depth in range(max(PIPELINES.values()) + 1)]
    pipelines = None if args.pipelines is None else [int(word) for word in several(
        "pipelines", args.pipelines, depths)]
    against = [name for name in baselines(args.against) if name != design.arithmetic]
    folder = writable_folder("out", files.output(design.name) if args.out is None else args.out)
    file = None if args.json is None else writable_file("json", args.json)
    return partial(work, design, against, recipe, library, args.workload, period, wire, pipelines, processes, folder,
                   file)


def work(design: Design, against: Sequence[str], recipe: str, library: Library, workload: str, period: float | None,
         wire: float, pipelines: Sequence[int] | None, processes: int, folder: Path, file: Path | None) -> None:
    """Measure, write the report, print it."""
    console = make_console()
    with progress_bar(console) as bar:
        found = energy.compare(design, against, recipe, library, workload, period, wire, pipelines, processes,
                               mover(bar, design.name))
    make_folder("out", folder)
    data = found.as_dict()
    files.write_json(folder / "power.json", data)
    save(report.energy_plot(found), folder / "power.png")
    if file is not None:
        with writing("json", file):
            files.write_json(file, data)
    console.print(report.energy_table(found.energy))
    if found.baselines:
        console.print(report.against_table(found))
    console.print(f"{folder / 'power.json'}, {folder / 'power.png'}", markup=False, soft_wrap=True)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
