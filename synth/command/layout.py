"""``python -m synth layout``: a part placed and routed, and what wires add to its area, capacitance and clock."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from rich.table import Table

from hbfp.command import Parser, run
from hbfp.design import Design
from hbfp.files import write_json
from hbfp.options import add_design_options
from hbfp.values import choice, writable_file, writing

from ..tools import recipes
from ..tools.errors import FAILURES
from ..tools.library import Library
from .options import add_flow_options, check_unit, choose_target, free_clock, jobs, least_area, make_console

EXAMPLES = """\
examples:
  python -m synth layout --rows 4 --block 1,4 --picture group.png        a group of 4 x 4 elements, in OSU018
  python -m synth layout --unit dot_product --block 1,4 --mantissa 4
"""
#: Figures of the table: name in the JSON, text, how it is printed.
ROWS = (("cells", "cells", "{:,}"), ("cells_um2", "their area, um2", "{:,.0f}"),
        ("block_um2", "the block's, um2", "{:,.0f}"), ("area_added", "area that is added", "{:.1%}"),
        ("nets", "nets", "{:,}"), ("wire_um", "wire, um", "{:,.0f}"), ("wire_um_a_sink", "a sink, um", "{:.1f}"),
        ("wire_ff_a_sink", "capacitance of wires a sink, fF", "{:.2f}"),
        ("capacitance_added", "capacitance that is added to that of pins", "{:.1%}"),
        ("period_ns", "longest path without wires, ns", "{:.2f}"),
        ("period_with_wires_ns", "with wires, ns", "{:.2f}"))


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth layout", epilog=EXAMPLES, description=__doc__.split(": ", 1)[1] +
                    " GrayWolf and qrouter do it, which Debian has, with the cells of OSU018.")
    add_design_options(parser)
    add_flow_options(parser)
    parser.add_argument("--unit", metavar="NAME", default="group", help="a part without memories, as python -m gen "
                        "--unit (default: group)")
    parser.add_argument("--picture", metavar="FILE", help="draw cells and wires, as PNG")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    check_unit(args.unit)
    design, processes = least_area(args), jobs(args)
    free_clock(design, "layout")
    if args.recipe is not None:
        choice("recipe", args.recipe, recipes.CELL_RECIPES)
    recipe, library = choose_target(args.recipe or "area", args.liberty)
    assert library is not None, "a recipe with cells has a library"
    for name in ("picture", "json"):
        if getattr(args, name) is not None:
            setattr(args, name, writable_file(name, getattr(args, name)))
    return partial(work, args, design, recipe, library, processes)


def work(args: argparse.Namespace, design: Design, recipe: str, library: Library, processes: int) -> None:
    """Lay a part out, and tell."""
    from ..layout.measure import lay_out

    console = make_console()
    with console.status("") as status:
        found = lay_out(design, args.unit, recipe, library, processes, lambda step: status.update(f"{step}: minutes"))
    data = found.as_dict() | {"design": design.name, "unit": args.unit, "recipe": recipe, "library": library.name}
    table = Table(title=f"{found.top}, {library.name}, recipe {recipe}, placed and routed", title_justify="left",
                  show_header=False)
    table.add_column("what")
    table.add_column("figure", justify="right")
    for name, text, form in ROWS:
        table.add_row(text, "no OpenSTA" if data[name] is None else form.format(data[name]))
    console.print(table)
    if args.picture is not None:
        from ..layout.picture import draw

        with writing("picture", args.picture):
            draw(args.picture, found, f"{found.top}, {library.name}")
        console.print(f"picture: {args.picture}", markup=False, soft_wrap=True)
    if args.json is not None:
        with writing("json", args.json):
            write_json(args.json, data)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
