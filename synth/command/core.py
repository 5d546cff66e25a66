"""``python -m synth``: the area of a design, and what FP32 would take instead."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from hbfp import files
from hbfp.command import Parser, run
from hbfp.design import Design
from hbfp.options import add_design_options
from hbfp.values import OptionError, make_folder, number, refuse, writable_folder

from ..compare import dot_product
from ..compare.baselines import BASELINES, baseline
from ..compare.clocks import clocks
from ..compare.comparison import Comparison, compare
from ..compare.period import RECIPES, meet
from ..measure import timing
from ..measure.area import measure
from ..report import sweep_table, tables
from ..tools import opensta
from ..tools.errors import FAILURES
from ..tools.library import Library
from .options import (
    add_flow_options,
    add_memory_option,
    baselines,
    check_unit,
    choose_targets,
    jobs,
    least_area,
    make_console,
    memory_bit,
    mover,
    progress_bar,
)

#: Clock periods that may be asked for, in ns.
PERIOD_RANGE = (0.01, 1000)
EXAMPLES = """\
examples:
  python -m synth                                 the default design, 32 x 32, against FP32 and integer arrays
  python -m synth fetch                           fetch the OSU018 cell library (Debian's apt-get and dpkg)
  python -m synth --mantissa 4 --recipe area,stock     the recipe of the manuals beside the pinned one
  python -m synth --multiplier plain              `*` and `+` instead of recoded products
  python -m synth --liberty cells.lib --against fp32,fma,bf16,int
  python -m synth --liberty a.lib,b.lib           libraries side by side; all: those in build/lib
  python -m synth --equal-clock --against fp32    best groups, and pipelines that meet the same clock
  python -m synth --period 7.5                    the fewest registers that meet a clock period in ns
  python -m synth --unit encode --timing          one part alone, with its critical path
  python -m synth --unit dot_product --mantissa 4 --block 1,128      against FP32 multiply-adds; also dot_product.both
  python -m synth accelerator --help              memories, DMA and instructions around a core
  python -m synth sweep --help                    many designs
  python -m synth fpga --help                     LUTs, carries, DSP blocks, clocks
  python -m synth bitstream --help                a whole core on an ECP5: its clock, its bitstream
  python -m synth netlist --help                  what was measured, as Verilog to simulate
  python -m synth power --help                    energy of a multiply-accumulate with a workload
"""


def clock_periods(design: Design, found: Comparison, recipe: str, cells: Library | None,
                  access: float | None) -> dict[str, dict[str, float]]:
    """Periods of the design and its baselines by arithmetic."""
    return {each.arithmetic: timing.periods(each, recipe, cells, access=access)
            for each in [design, *(report.design for report in found.baselines.values())]}


def make_parser() -> Parser:
    """The command line of a report."""
    parser = Parser(prog="python -m synth", epilog=EXAMPLES,
                    description="Area of a design by Yosys, by component, and of baselines with the same dataflow.")
    add_design_options(parser)
    add_flow_options(parser, several=True)
    add_memory_option(parser)
    parser.add_argument("--against", metavar="NAMES", help=f"baselines: {','.join(BASELINES)} (default: fp32,int)")
    parser.add_argument("--unit", metavar="NAME", default="core", help="a part alone, as python -m gen --unit")
    parser.add_argument("--timing", action="store_true", help="clock periods too (by OpenSTA: python -m synth fetch)")
    parser.add_argument("--memory-access", metavar="NS", help="time in ns that reading a memory takes, {:g} to {:g} "
                        "(default: {} for OSU018, {} for other libraries, assumed)".format(
                            *timing.ACCESS_RANGE, *timing.ACCESS.values()))
    parser.add_argument("--period", metavar="NS", help="clock period in ns: the fewest registers, and the recipe, with "
                        "which the whole core meets it")
    parser.add_argument("--equal-clock", action="store_true", help="groups and pipelines of every core, and the "
                        "smallest that meet the same clock (by OpenSTA; about 40 units of a minute each)")
    parser.add_argument("--out", metavar="DIR", help="folder of synth.json and synth.csv (default: build/NAME)")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    design, args.jobs, args.bit = least_area(args), jobs(args), memory_bit(args)
    check_unit(args.unit)
    targets = choose_targets(args.recipe, args.liberty)
    args.access = args.memory_access and number("memory-access", args.memory_access, *timing.ACCESS_RANGE)
    if args.unit != "core" and (len(targets) > 1 or args.period or args.equal_clock):
        raise refuse("unit", args.unit, "must be core to meet a clock, and for more than one recipe or library")
    if args.period and len({cells for _, cells in targets}) > 1:
        raise refuse("liberty", args.liberty, "must be one library to meet a clock")
    if args.unit in dot_product.DOT_PRODUCT_UNITS:
        against = dot_product.baselines(args.unit, args.against)
    elif args.unit != "core" and args.against:
        raise refuse("against", args.against, f"must be left out: --unit {args.unit} has no baseline")
    else:
        against = baselines("fp32,int" if args.against is None else args.against)
    beside = [baseline(design, name) for name in against if name != design.arithmetic]
    folder = writable_folder("out", files.output(design.name) if args.out is None else args.out)
    for option, given in (("--timing", args.timing), ("--equal-clock", args.equal_clock),
                          ("--period", args.period)):
        if given and not (all(cells for _, cells in targets) and opensta.find()):
            raise OptionError(f"{option}: needs OpenSTA and a cell library: python -m synth fetch")
    if args.period is not None:
        period = number("period", args.period, *PERIOD_RANGE)
        recipes = RECIPES if args.recipe is None else [recipe for recipe, _ in targets]
        cells = targets[0][1]
        assert cells is not None, "said above"
        return partial(meet_period, args, design, period, recipes, cells, folder)
    return partial(measure_core if args.unit == "core" else measure_part, args, design, targets, beside, folder)


def measure_part(args: argparse.Namespace, design: Design, targets: Sequence[tuple[str, Library | None]],
                 others: Sequence[Design], folder: Path) -> None:
    """The area of a part alone, in sight of the user."""
    console, (recipe, cells) = make_console(), targets[0]
    with progress_bar(console) as bar:
        progress = mover(bar, "Yosys")
        if args.unit in dot_product.DOT_PRODUCT_UNITS:
            single, beside = dot_product.compare(design, args.unit, recipe, cells, others, progress)
        else:
            single = measure(design, recipe, cells, args.unit, progress, args.bit)
    make_folder("out", folder)
    console.print(tables.breakdown_table(single))
    data = single.as_dict()
    if args.timing:
        paths = timing.paths(design, recipe, cells, args.unit, args.access)
        for kind, path in paths.items():
            console.print(f"{args.unit if kind == 'core' else kind}: {path.period:.2f} ns, {path}", soft_wrap=True)
        data["paths"] = {kind: asdict(path) for kind, path in paths.items()}
    if args.unit in dot_product.DOT_PRODUCT_UNITS:
        console.print(tables.dot_product_table(single, beside))
        data = dot_product.as_dict(single, beside)
    files.write_json(folder / f"{args.unit}.json", data)


def meet_period(args: argparse.Namespace, design: Design, period: float, recipes: Sequence[str], cells: Library,
                folder: Path) -> None:
    """The registers and the recipe that meet a period, in sight of the user."""
    console = make_console()
    with progress_bar(console) as bar:
        found = meet(design, period, cells, recipes, args.access, mover(bar, "Yosys"))
    make_folder("out", folder)
    console.print(tables.breakdown_table(found.report))
    console.print(f"--pipeline {found.design.pipeline}, recipe {found.recipe}: {found.path.period:.2f} ns of "
                  f"{period:g}; critical path: {found.path}", soft_wrap=True)
    files.write_json(folder / "period.json", {
        "period_ns": period, "pipeline": found.design.pipeline, "recipe": found.recipe,
        "reached_ns": found.path.period, "path": asdict(found.path), "report": found.report.as_dict()})
    console.print(f"{folder / 'period.json'}")


def measure_core(args: argparse.Namespace, design: Design, targets: Sequence[tuple[str, Library | None]],
                 beside: Sequence[Design], folder: Path) -> None:
    """The area of a core beside its baselines, under every recipe, in sight of the user."""
    console = make_console()
    with progress_bar(console) as bar:
        progress = mover(bar, "Yosys")
        found = [_compared(design, recipe, cells, beside, args, progress) for recipe, cells in targets]
    make_folder("out", folder)
    first, *more = found
    files.write_json(folder / "synth.json", first.as_dict() | (
        {"recipes": {_target_name(first, each): each.as_dict() for each in more}} if more else {}))
    files.write(folder / "synth.csv", tables.csv_text(found))
    console.print(tables.breakdown_table(first.report))
    for each in found:
        for table in tables.comparison_tables(each):
            console.print(table)
    if len({each.report.library["name"] for each in found if each.report.library}) > 1:
        console.print(sweep_table.library_table(found))
    for cells in dict.fromkeys(cells for _, cells in targets):
        where = f"{cells.name} ({cells.path.name}, sha256 {cells.sha256[:12]}, NAND2 = {cells.nand2:g})" if cells else \
            "generic gates; for cells: python -m synth fetch"
        console.print(f"[dim]library {where}; {tables.tools_text(first.report.tools)}[/dim]")
    console.print(f"{folder / 'synth.json'}, {folder / 'synth.csv'}")


def _target_name(first, other):
    """What the JSON calls figures beside the first: the recipe, with the library where that is another."""
    name, library = other.report.recipe, other.report.library
    return name if library == first.report.library else f"{name}, {library['name'] if library else 'no library'}"


def _compared(design, recipe, cells, beside, args, progress):
    """One recipe's figures, with the clocks that the options ask for."""
    found = compare(design, recipe, cells, beside, args.jobs, progress, args.bit)
    if args.timing:
        found.periods = clock_periods(design, found, recipe, cells, args.access)
    if args.equal_clock:
        found.clocks = clocks(design, [each.arithmetic for each in beside], recipe, cells, args.jobs, progress)
    return found


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
