"""``python -m synth``: the area of a design, and what FP32 would take instead."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from golden.spec.options import OptionError, Parser, add_design_options, design_from_args
from hbfp import files

from . import dot_product, library, recipes, report, timing
from .area import baseline
from .clocks import clocks
from .errors import SynthError
from .study import BASELINES, study

EXAMPLES = """\
examples:
  python -m synth                                 the default design, 32 x 32, against FP32 and integer arrays
  python -m synth fetch                           fetch the OSU018 cell library (Debian's apt-get and dpkg)
  python -m synth --mantissa 4 --recipe area,stock     the recipe of the manuals beside the pinned one
  python -m synth --multiplier plain              `*` and `+` instead of recoded products
  python -m synth --liberty cells.lib --against fp32,fma,bf16,int
  python -m synth --equal-clock --against fp32    best groups, and pipelines that meet the same clock
  python -m synth --unit encode                   one part alone
  python -m synth --unit dot_product --mantissa 4 --block 1,128      against FP32 multiply-adds; also dot_product.both
  python -m synth sweep --help                    many designs
  python -m synth fpga --help                     LUTs, carries, DSP blocks, clocks
  python -m synth netlist --help                  what was measured, as Verilog to simulate
"""


def _progress(console):
    return Progress(TextColumn("{task.description:45.45}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                    console=console, transient=True)


def choose_library(args):
    """The library and the recipe that the options ask for."""
    cells = None if args.recipe in recipes.GENERIC_RECIPES else \
        library.load(args.liberty) if args.liberty else library.default()
    recipe = args.recipe or ("area" if cells else "generic")
    if recipe in recipes.CELL_RECIPES and not cells:
        raise SynthError(f"--recipe {recipe}: needs a cell library: python -m synth fetch, or --liberty FILE")
    return cells, recipe


def add_flow_options(parser):
    """Options that one report and a sweep share."""
    names = recipes.CELL_RECIPES + recipes.GENERIC_RECIPES
    parser.add_argument("--liberty", metavar="FILE", help="cell library (default: OSU018 if fetched, else "
                        "generic gates)")
    parser.add_argument("--recipe", metavar="NAME", help=f"Yosys script: {', '.join(names)} (default: area)")
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count(), help="processes (default: all cores)")


def check_flow_options(args):
    """Complain of what ``add_flow_options`` cannot know."""
    names = recipes.CELL_RECIPES + recipes.GENERIC_RECIPES
    if args.recipe is not None and args.recipe not in names:
        raise OptionError(f"--recipe {args.recipe}: must be one of {', '.join(names)}")
    if args.jobs < 1:
        raise OptionError(f"--jobs {args.jobs}: must be 1 or more")


def least_area(design, args):
    """The design with recoded multipliers, unless the user chose: the generator's default is quicker to simulate."""
    return design if args.multiplier else replace(design, multiplier="recoded")


def clock_periods(design, found, recipe, cells):
    """Periods of the design and its baselines by arithmetic."""
    return {each.arithmetic: timing.periods(each, recipe, cells)
            for each in [design, *(baseline(design, name) for name in found.baselines)]}


def main(argv=None):
    """Run the command; return its exit status."""
    argv = list(sys.argv[1:] if argv is None else argv)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    if argv[:1] == ["fetch"]:
        try:
            path = library.fetch()
        except SynthError as error:
            print(f"python -m synth: error: {error}", file=sys.stderr)
            return 1
        console.print(f"{path}: {library.load(path).name}")
        if library.fetch_timer(timing.OPENSTA):
            console.print(f"{timing.find()}: OpenSTA, for --timing")
        return 0
    if argv[:1] == ["sweep"]:
        from .sweep import main as sweep
        return sweep(argv[1:])
    if argv[:1] == ["fpga"]:
        from .fpga import main as fpga
        return fpga(argv[1:])
    if argv[:1] == ["netlist"]:
        from .gates import main as netlist
        return netlist(argv[1:])
    parser = Parser(prog="python -m synth", epilog=EXAMPLES,
                    description="Area of a design by Yosys, by component, and of baselines with the same dataflow.")
    add_design_options(parser)
    add_flow_options(parser)
    parser.add_argument("--against", metavar="NAMES", help=f"baselines: {','.join(BASELINES)} (default: fp32,int)")
    parser.add_argument("--unit", metavar="NAME", default="core", help="a part alone, as python -m gen --unit")
    parser.add_argument("--timing", action="store_true", help="clock periods too (by OpenSTA: python -m synth fetch)")
    parser.add_argument("--equal-clock", action="store_true", help="groups and pipelines of every core, and the "
                        "smallest that meet the same clock (by OpenSTA; about 40 units of a minute each)")
    parser.add_argument("--out", metavar="DIR", help="folder of synth.json and synth.csv (default: build/NAME)")
    args = parser.parse_args(argv)
    try:
        design = least_area(design_from_args(args), args)
        names = args.recipe.split(",") if args.recipe else [None]
        for args.recipe in names:
            check_flow_options(args)
        if args.unit in dot_product.UNITS:
            given = None if args.against is None else [name for name in args.against.split(",") if name]
            args.against = ",".join(dot_product.baselines(args.unit, given))
        against = [name for name in (args.against if args.against is not None else "fp32,int").split(",") if name]
        for name in against:
            if name not in BASELINES:
                raise OptionError(f"--against {name}: must be of {', '.join(BASELINES)}")
        if args.unit != "core" and (len(names) > 1 or args.timing or args.equal_clock):
            raise OptionError(f"--unit {args.unit}: must be core for clocks, and for more than one recipe")
    except OptionError as error:
        parser.error(str(error))
    try:
        steps = []
        for args.recipe in names:
            steps.append(choose_library(args))
            cells, recipe = steps[-1]
            for option, given in (("--timing", args.timing), ("--equal-clock", args.equal_clock)):
                if given and not (cells and timing.find()):
                    raise SynthError(f"{option}: needs OpenSTA and a cell library: python -m synth fetch")
        with _progress(console) as bar:
            task = bar.add_task("Yosys")

            def progress(n, total, name):
                bar.update(task, completed=n, total=total, description=name)
            if args.unit in dot_product.UNITS:
                single, beside = dot_product.study(design, args.unit, recipe, cells, against, progress)
            elif args.unit != "core":
                from .area import measure
                single = measure(design, *reversed(steps[0]), args.unit, progress)
            else:
                found = [_study(design, recipe, cells, against, args, progress) for cells, recipe in steps]
        folder = Path(args.out or Path("build") / design.name)
        folder.mkdir(parents=True, exist_ok=True)
    except (SynthError, OSError) as error:
        print(f"python -m synth: error: {error}", file=sys.stderr)
        return 1
    if args.unit != "core":
        console.print(report.breakdown_table(single))
        if args.unit in dot_product.UNITS:
            console.print(dot_product.table(single, beside))
            files.write(folder / f"{args.unit}.json", json.dumps(dot_product.as_dict(single, beside), indent=1) + "\n")
            return 0
        files.write(folder / f"{args.unit}.json", json.dumps(single.as_dict(), indent=1) + "\n")
        return 0
    first, *more = found
    files.write(folder / "synth.json", json.dumps(first.as_dict() | (
        {"recipes": {each.report.recipe: each.as_dict() for each in more}} if more else {}), indent=1) + "\n")
    files.write(folder / "synth.csv", report.csv_text(found))
    console.print(report.breakdown_table(first.report))
    for each in found:
        for table in report.study_tables(each):
            console.print(table)
    cells = steps[0][0]
    tools = ", ".join(f"{name} {version}" for name, version in first.report.tools.items())
    where = f"{cells.name} ({cells.path.name}, sha256 {cells.sha256[:12]}, NAND2 = {cells.nand2:g})" if cells else \
        "generic gates; for cells: python -m synth fetch"
    console.print(f"[dim]library {where}; {tools}[/dim]")
    console.print(f"{folder / 'synth.json'}, {folder / 'synth.csv'}")
    return 0


def _study(design, recipe, cells, against, args, progress):
    """One recipe's figures, with the clocks that the options ask for."""
    found = study(design, recipe, cells, against, args.jobs, progress)
    if args.timing:
        found.periods = clock_periods(design, found, recipe, cells)
    if args.equal_clock:
        found.clocks = clocks(design, against, recipe, cells, args.jobs, progress)
    return found


if __name__ == "__main__":
    sys.exit(main())
