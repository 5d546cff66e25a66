"""``python -m synth corners``: the clock of one mapped core in corners of its process, without wires and with them."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from hbfp import files
from hbfp.command import Parser, run
from hbfp.design import Design
from hbfp.options import add_design_options
from hbfp.values import (
    OptionError,
    choice,
    make_folder,
    number,
    refuse,
    words_of,
    writable_file,
    writable_folder,
    writing,
)

from ..compare import corners
from ..compare.prepare import prepare as synthesise
from ..measure import timing
from ..tools import library, opensta, recipes
from ..tools.errors import FAILURES
from ..tools.library import Library
from .options import WIRE_RANGE, add_flow_options, choose_target, jobs, least_area, make_console, mover, progress_bar

EXAMPLES = """\
examples:
  python -m synth corners --pipeline 2 --wire 10                    OSU018, which has one corner
  python -m synth corners --pipeline 7 --group 4,2 --liberty cells.lib --corners slow=slow.lib,fast=fast.lib --wire 2
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth corners", epilog=EXAMPLES,
                    description="The shortest clock period of a core that is mapped once, with the delays of each "
                    "library of the same cells, without wires and with wires of a stated capacitance (by OpenSTA).")
    add_design_options(parser)
    add_flow_options(parser)
    parser.add_argument("--corners", metavar="NAME=FILE,...", help="other corners of the library, which is the typical "
                        "one")
    parser.add_argument("--wire", metavar="FF", default="2", help="capacitance of wire in fF for each pin that a gate "
                        "drives, {} to {} (default: 2)".format(*WIRE_RANGE))
    parser.add_argument("--memory-access", metavar="NS", help="time in ns that reading a memory takes in each corner, "
                        "{:g} to {:g} (default: {} for OSU018, {} for other libraries, assumed)".format(
                            *timing.ACCESS_RANGE, *timing.ACCESS.values()))
    parser.add_argument("--out", metavar="DIR", help="folder of corners.json (default: build/NAME)")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return parser


def _corners(text: str | None) -> dict[str, Library]:
    """Name -> library of ``--corners``; OptionError if it is not valid."""
    found: dict[str, Library] = {}
    for word in words_of("corners", text) if text is not None else []:
        name, equals, path = word.partition("=")
        if not (equals and path and name.isidentifier() and name != corners.TYPICAL and name not in found):
            raise refuse("corners", word, f"must be NAME=FILE, a name once, and none {corners.TYPICAL}")
        found[name] = library.load(path)
    return found


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    design, processes = least_area(args), jobs(args)
    if args.recipe is not None:
        choice("recipe", args.recipe, recipes.CELL_RECIPES)
    wire = number("wire", args.wire, *WIRE_RANGE)
    access = None if args.memory_access is None else number("memory-access", args.memory_access, *timing.ACCESS_RANGE)
    recipe, cells = choose_target(args.recipe or "speed", args.liberty)
    assert cells is not None, "a recipe with cells has a library"
    others = _corners(args.corners)
    corners.check(cells, others)
    if not opensta.find():
        raise OptionError("python -m synth corners needs OpenSTA: python -m synth fetch")
    folder = writable_folder("out", files.output(design.name) if args.out is None else args.out)
    file = None if args.json is None else writable_file("json", args.json)
    return partial(work, design, recipe, cells, others, wire, access, processes, folder, file)


def work(design: Design, recipe: str, cells: Library, others: Mapping[str, Library], wire: float,
         access: float | None, processes: int, folder: Path, file: Path | None) -> None:
    """Map a core, time it in each corner, and tell."""
    console = make_console()
    with progress_bar(console) as bar:
        synthesise([design], [(recipe, cells)], processes, mover(bar, "Yosys"))
    with console.status("") as status:
        found = corners.periods(design, recipe, cells, others, wire, access,
                                lambda name: status.update(f"OpenSTA: {name}"))
    table = Table(title=f"{design.name}, recipe {recipe}, mapped to {cells.name} ({cells.path.name})",
                  title_justify="left")
    for head in ("corner", "wire a sink, fF", "ns", "MHz", "set by"):
        table.add_column(head, justify="left" if head in ("corner", "set by") else "right")
    for each in found:
        table.add_row(each.corner, f"{each.wire:g}", f"{each.path.period:.2f}", f"{each.mhz:.0f}", each.kind)
    console.print(table)
    told: dict[str, dict[str, Any]] = {}
    for each in found:
        corner = told.setdefault(each.corner, {
            "library": each.library.name, "file": each.library.path.name, "sha256": each.library.sha256})
        corner["wires" if each.wire else "none"] = {
            "ns": each.path.period, "mhz": each.mhz, "set_by": each.kind, "path": asdict(each.path)}
    data = {"design": design.name, "recipe": recipe, "wire_ff": wire,
            "memory_access_ns": timing.access_time(cells) if access is None else access, "corners": told}
    make_folder("out", folder)
    files.write_json(folder / "corners.json", data)
    console.print(f"{folder / 'corners.json'}", soft_wrap=True)
    if file is not None:
        with writing("json", file):
            files.write_json(file, data)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
