"""``python -m synth accelerator``: the area of an accelerator, by component, and beside those of other numbers."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.table import Table

from hbfp import files
from hbfp.command import Parser, run
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import OptionError, make_folder, writable_file, writable_folder, writing

from ..compare.machines import VALID, machine, name_of, ratios
from ..measure.accelerator import SLOW, AcceleratorReport, measure
from ..measure.memories import label
from ..report.accelerator import component_plot
from ..report.machines import machines_plot, machines_table
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
  python -m synth accelerator --preset small --recipe adders --weight-clock gated --against hbfp6,hbfp4,int8,fp32
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
    parser.add_argument("--against", metavar="LIST", default="", help="also measure the machines of these numbers, "
                        f"with the same options: {VALID}")
    parser.add_argument("--out", metavar="DIR", help="folder of accelerator.json and the pictures (default: "
                        "build/NAME)")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    system = system_from_args(args, Accelerator, multiplier="recoded")
    processes, bit, target = jobs(args), memory_bit(args), choose_target(args.recipe, args.liberty)
    folder = writable_folder("out", files.output(system.name) if args.out is None else args.out)
    file = None if args.json is None else writable_file("json", args.json)
    others = {name: machine(system, name) for name in _listed(args.against)}
    if name_of(system) in others:
        raise OptionError(f"--against {name_of(system)}: is the machine itself")
    return partial(work, system, target, processes, bit, folder, file, _listed(args.kinds), others)


def _listed(text):
    return [each for each in text.split(",") if each]


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
         file: Path | None, kinds: Sequence[str], others: Mapping[str, Accelerator]) -> None:
    """Measure, write the report, print it."""
    console = make_console()
    slow = partial(_slow, console)
    with progress_bar(console) as bar:
        reports = {name: measure(each, *target, processes, mover(bar, each.name), bit, slow, kinds)
                   for name, each in {name_of(system): system, **others}.items()}
    report = next(iter(reports.values()))
    data = report.as_dict() | ({"machines": ratios(reports)} if others else {})
    make_folder("out", folder)
    files.write_json(folder / "accelerator.json", data)
    save(component_plot(report), folder / "accelerator.png")
    written = [folder / "accelerator.json", folder / "accelerator.png"]
    console.print(table(report))
    if others:
        save(machines_plot(reports), folder / "machines.png")
        written.append(folder / "machines.png")
        console.print(machines_table(reports))
    if file is not None:
        with writing("json", file):
            files.write_json(file, data)
    console.print(", ".join(map(str, written)), markup=False, soft_wrap=True)


def _slow(console, name):
    console.print(f"{name}: under way for {SLOW // 60} minutes", markup=False, soft_wrap=True)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
