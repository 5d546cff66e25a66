"""``python -m synth sweep``: designs crossed, every unit synthesised once, results kept as they come."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.progress import Progress

from hbfp import command, files
from hbfp.command import Parser
from hbfp.design import Design
from hbfp.values import OptionError, address, flag, make_folder, refuse, writable_folder

from ..compare import denominators, smaller, sweep
from ..compare.baselines import BASELINES
from ..compare.clocks import Point
from ..compare.design_space import AXES, PLANS, axes_of, cross, designs_of_plan
from ..measure.area import Report
from ..report import clock_table, denominators_table, plots, smaller_table, sweep_table, tables
from ..report.html import write_page
from ..tools import opensta
from ..tools.errors import FAILURES
from ..tools.library import Library
from .options import (
    add_flow_options,
    add_memory_option,
    baselines,
    choose_target,
    choose_targets,
    jobs,
    make_console,
    memory_bit,
    mover,
    progress_bar,
)

#: The plan that measures clocks alone.
CLOCKS = "clocks"
EXAMPLES = """\
examples:
  python -m synth sweep                                   mantissas 4, 6, 8 at 32 x 32
  python -m synth sweep --plan table                      the README's table
  python -m synth sweep --plan denominators --against fp32,fma,bf16       floats by group: what ratios divide by
  python -m synth sweep --plan smaller                    what makes cores smaller with equal bits, and FP32, too
  python -m synth sweep --plan clocks --recipe speed --against fp32,fma,bf16          areas at an equal clock
  python -m synth sweep --plan study --clocks             arrays, blocks, groups, accumulations: 123 designs
  python -m synth sweep --mantissa 2,3,4,5,6,8,12 --rows 8,16,24,32,64,128
  python -m synth sweep --mantissa 8 --group 1x1,2x1,4x1,8x1,4x4,8x4,8x8 --pipeline 0,1
  python -m synth sweep --accumulate fp32,aligned --recipe area,stock --liberty a.lib,b.lib
  python -m synth sweep --scheduler tcp://host:8786       workers of a Dask cluster (pip install "hbfp[dask]")
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth sweep", epilog=EXAMPLES, description="Areas of many designs.")
    for name, default in AXES.items():
        parser.add_argument(flag(name), metavar="LIST",
                            help=f"values with commas between (default: {','.join(default) or 'as python -m gen'})")
    parser.add_argument("--plan", metavar="NAME", help=f"designs by name instead: {', '.join(PLANS)}")
    add_flow_options(parser, several=True)
    add_memory_option(parser)
    parser.add_argument("--against", metavar="NAMES", default="fp32,int", help=f"baselines: {','.join(BASELINES)}")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler; needs the extra `dask`")
    parser.add_argument("--clocks", action="store_true", help="areas at an equal clock too, as --plan clocks (by "
                        "OpenSTA; about 100 units of half a minute each)")
    parser.add_argument("--out", metavar="DIR", default=str(files.output("sweep")),
                        help="folder for tables and pictures")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    args.jobs, args.scheduler, args.bit = jobs(args), address("scheduler", args.scheduler), memory_bit(args)
    targets = choose_targets(args.recipe, args.liberty)
    if args.clocks and args.plan in (denominators.PLAN, smaller.PLAN):
        raise refuse("plan", args.plan, "has no clocks, take away --clocks")
    args.clocks = args.clocks or args.plan == CLOCKS
    if args.clocks and not (targets[0][1] and opensta.find()):
        raise OptionError("--clocks: needs OpenSTA and a cell library: python -m synth fetch")
    lists = {name: getattr(args, name) for name in AXES}
    given = [flag(name) for name, words in lists.items() if words is not None]
    if args.plan is not None and given:
        raise refuse("plan", args.plan, f"names its designs itself, take away {', '.join(given)}")
    against = baselines(args.against)
    if args.plan == denominators.PLAN:
        designs = denominators.float_designs(against)
        return partial(work_denominators, args, designs, targets, writable_folder("out", args.out))
    if args.plan == smaller.PLAN:
        if args.recipe:
            raise refuse("plan", args.plan, "has recipes of its own, take away --recipe")
        libraries = [library for _, library in targets if library]
        if not libraries:
            raise refuse("plan", args.plan, "needs a cell library: python -m synth fetch, or --liberty FILE")
        for library in libraries:
            choose_target("adders", library.path)
        return partial(work_smaller, args, libraries, writable_folder("out", args.out))
    designs, left_out = cross(axes_of(lists)) if args.plan is None else designs_of_plan(args.plan)
    if not designs:
        raise OptionError("no combination is a valid design")
    if args.plan == CLOCKS:
        return partial(work_clocks, args, designs, targets[0], against, writable_folder("out", args.out))
    return partial(work, args, designs, left_out, targets, against, writable_folder("out", args.out))


def work(args: argparse.Namespace, designs: Sequence[Design], left_out: int,
         targets: Sequence[tuple[str, Library | None]], against: Sequence[str], folder: Path) -> None:
    """Measure all designs, write tables and pictures, in sight of the user."""
    console = make_console()
    with progress_bar(console) as bar:
        progress = mover(bar, f"{len(designs)} designs", f"{len(designs)} designs, ")
        comparisons = sweep.run(designs, targets, against, args.jobs, args.scheduler, progress, args.bit)
        clocked = clock_points(bar, args, designs, targets[0], against) if args.clocks else ()
    make_folder("out", folder)
    files.write_json(folder / "sweep.json", sweep.as_dict(comparisons, clocked))
    files.write(folder / "sweep.csv", tables.csv_text(comparisons))
    console.print(sweep_table.table(comparisons))
    if len({each.report.library["name"] for each in comparisons if each.report.library}) > 1:
        console.print(sweep_table.library_table(comparisons))
    if left_out:
        console.print(f"[dim]{left_out} combinations left out: block, group and rows contradict each other[/dim]")
    if clocked:
        console.print(clock_table.table(sweep.equal_clocks(clocked)))
    written = write_page(folder, comparisons, clocked)
    console.print(", ".join(str(path) for path in (folder / "sweep.json", folder / "sweep.csv", *written)))


def clock_points(bar: Progress, args: argparse.Namespace, designs: Sequence[Design], target: tuple[str, Library | None],
                 against: Sequence[str]) -> list[Point]:
    """Areas and clocks, with a bar."""
    return sweep.clock_points(designs, against, *target, args.jobs, mover(bar, "clocks", "clocks, "))


def work_clocks(args: argparse.Namespace, designs: Sequence[Design], target: tuple[str, Library | None],
                against: Sequence[str], folder: Path) -> None:
    """Measure areas at equal clocks alone, write table and picture, in sight of the user."""
    console = make_console()
    with progress_bar(console) as bar:
        clocked = clock_points(bar, args, designs, target, against)
    make_folder("out", folder)
    files.write_json(folder / "clocks.json", sweep.as_dict((), clocked))
    console.print(clock_table.table(sweep.equal_clocks(clocked)))
    picture = plots.save(plots.pareto_plot(clocked), folder / "pareto.png")
    console.print(f"{folder / 'clocks.json'}, {picture}")


def work_denominators(args: argparse.Namespace, designs: Sequence[Design],
                      targets: Sequence[tuple[str, Library | None]], folder: Path) -> None:
    """Measure floats beside cores of blocks, write the tables, in sight of the user."""
    console = make_console()
    with progress_bar(console) as bar:
        progress = mover(bar, f"{len(designs)} floats", f"{len(designs)} floats, ")
        comparisons = sweep.run([*denominators.block_designs(), *designs], targets, (), args.jobs, args.scheduler,
                                progress, args.bit)
    make_folder("out", folder)
    every = denominators.Denominators.by_target(comparisons)
    files.write_json(folder / "denominators.json", {"denominators": [each.as_dict() for each in every]})
    files.write(folder / "denominators.csv", tables.csv_text(comparisons))
    for each in every:
        console.print(denominators_table.table(each))
    console.print(f"{folder / 'denominators.json'}, {folder / 'denominators.csv'}")


def work_smaller(args: argparse.Namespace, libraries: Sequence[Library], folder: Path) -> None:
    """Measure step by step what makes cores smaller, write the tables, in sight of the user."""
    console = make_console()
    reports: dict[Library, dict[tuple[str, Design], Report]] = {library: {} for library in libraries}
    with progress_bar(console) as bar:
        for recipe, designs in smaller.wanted().items():
            progress = mover(bar, f"{len(designs)} designs", f"{recipe}, ")
            targets = [(recipe, library) for library in libraries]
            run = sweep.run(designs, targets, (), args.jobs, args.scheduler, progress, args.bit)
            for n, library in enumerate(libraries):    # one after the other, each with all designs
                for each in run[n * len(designs):(n + 1) * len(designs)]:
                    reports[library][recipe, each.report.design] = each.report
    found = [smaller.Smaller.of(own, library) for library, own in reports.items()]
    make_folder("out", folder)
    files.write_json(folder / "smaller.json", smaller.as_dict(found))
    for each in found:
        console.print(smaller_table.table(each))
    console.print(f"{folder / 'smaller.json'}")


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return command.run(make_parser(), prepare, argv, FAILURES)
