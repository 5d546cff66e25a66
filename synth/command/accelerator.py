"""``python -m synth accelerator``: the area of an accelerator, by component."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.table import Table

from hbfp import files
from hbfp.command import Parser, run
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import make_folder, writable_file, writable_folder, writing

from ..measure.accelerator import SLOW, AcceleratorReport, measure
from ..measure.memories import label
from ..report.accelerator import component_plot
from ..report.plots import save
from ..report.tables import NOT_COUNTED, number
from ..tools.errors import FAILURES
from ..tools.library import Library
from .options import (
    add_flow_options,
    add_memory_option,
    choose_target,
    jobs,
    make_console,
    memory_bit,
    mover,
    progress_bar,
)

EXAMPLES = """\
examples:
  python -m synth accelerator                      32 x 32, HBFP8
  python -m synth accelerator --rows 16 --block 1,16 --v-words 2048
  python -m synth accelerator --kinds convert,multiply    these units alone
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth accelerator", epilog=EXAMPLES,
                    description="Area of an accelerator by Yosys, by component.")
    add_system_options(parser, Accelerator, "accelerator")
    add_flow_options(parser)
    add_memory_option(parser)
    parser.add_argument("--kinds", metavar="LIST", default="", help="measure units of these kinds alone, such as "
                        "convert,multiply (default: all)")
    parser.add_argument("--out", metavar="DIR", help="folder of accelerator.json and the picture (default: "
                        "build/NAME)")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    system = system_from_args(args, Accelerator, multiplier="recoded")
    processes, bit, target = jobs(args), memory_bit(args), choose_target(args.recipe, args.liberty)
    folder = writable_folder("out", files.output(system.name) if args.out is None else args.out)
    file = None if args.json is None else writable_file("json", args.json)
    return partial(work, system, target, processes, bit, folder, file, [each for each in args.kinds.split(",") if each])


def table(report: AcceleratorReport) -> Table:
    """Components, the largest first, with their share of the logic."""
    result = Table(title=f"{report.system.name}, recipe {report.recipe}", title_justify="left", caption_justify="left",
                   caption=f"NAND2-equivalents; memories {label(report.bit)}; not counted: {NOT_COUNTED}")
    result.add_column("component")
    for head in ("logic", "share", "flip-flops", "memory bits", "memories"):
        result.add_column(head, justify="right")
    for name, figures in sorted(report.components.items(), key=lambda item: -item[1].area):
        result.add_row(name, number(figures.area), f"{report.share(name):.1%}", f"{figures.flipflops:,}",
                       f"{figures.bits:,}", number(figures.memories(report.bit)))
    result.add_section()
    result.add_row("all", number(report.logic), "", "", f"{report.bits:,}", number(report.memories))
    return result


def work(system: Accelerator, target: tuple[str, Library | None], processes: int, bit: float | None, folder: Path,
         file: Path | None, kinds: Sequence[str] = ()) -> None:
    """Measure, write the report, print it."""
    console = make_console()
    with progress_bar(console) as bar:
        report = measure(system, *target, processes, mover(bar, system.name), bit, lambda name: console.print(
            f"{name}: under way for {SLOW // 60} minutes", markup=False, soft_wrap=True), kinds)
    make_folder("out", folder)
    files.write_json(folder / "accelerator.json", report.as_dict())
    save(component_plot(report), folder / "accelerator.png")
    if file is not None:
        with writing("json", file):
            files.write_json(file, report.as_dict())
    console.print(table(report))
    console.print(f"{folder / 'accelerator.json'}, {folder / 'accelerator.png'}", markup=False, soft_wrap=True)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
