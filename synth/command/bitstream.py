"""``python -m synth bitstream``: a whole core on an ECP5, placed and routed, with its clock and its bitstream."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from hbfp import files
from hbfp.command import Parser, run
from hbfp.design import Design
from hbfp.options import add_design_options, design_from_args
from hbfp.values import OptionError, choice, make_folder, whole, writable_folder

from ..measure import whole as measure
from ..report.bitstream import path, table
from ..report.tables import tools_text
from ..tools import ecp5, nextpnr, yosys
from ..tools.errors import FAILURES
from .options import free_clock, make_console, mover, progress_bar

EXAMPLES = """\
examples:
  python -m synth bitstream --rows 4 --block 1,4 --depth 64               minutes
  python -m synth bitstream --rows 16 --block 1,16 --pipeline 2 --group 1,4
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth bitstream", epilog=EXAMPLES, description=(
        "A whole core on an ECP5, in one piece, behind six pins: what it takes of the device, its clock, its "
        "bitstream."))
    add_design_options(parser)
    parser.add_argument("--device", metavar="NAME", default="LFE5U-85F",
                        help=f"{', '.join(ecp5.DEVICES)} (default: %(default)s)")
    parser.add_argument("--dsps", metavar="N", help="DSP blocks for multipliers, the widest first; the others become "
                        "carry chains, 0 to what the device has (default: that)")
    parser.add_argument("--seed", metavar="N", default=nextpnr.SEED, help="of the placement (default %(default)s)")
    parser.add_argument("--limit", metavar="S", default=3600, help="seconds for nextpnr (default %(default)s)")
    parser.add_argument("--out", metavar="DIR", help="folder of NAME.bit and NAME.json (default: build/bitstream)")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    design = design_from_args(args)
    free_clock(design, "bitstream")
    device = choice("device", args.device, ecp5.DEVICES)
    most = ecp5.DEVICES[device].dsps
    budget = most if args.dsps is None else whole("dsps", args.dsps, 0, most)
    seed, limit = whole("seed", args.seed, 1, 1 << 30), whole("limit", args.limit, 1, 1 << 20)
    folder = writable_folder("out", files.output("bitstream") if args.out is None else args.out)
    if (router := nextpnr.find("ecp5")) is None:
        raise OptionError("nextpnr for ECP5 is needed: pip install 'hbfp[fpga]'")
    return partial(work, design, device, budget, seed, limit, folder, router[1])


def work(design: Design, device: str, budget: int, seed: int, limit: int, folder: Path, router: str) -> None:
    """Build it in sight of the user, write the bitstream and the figures, print them."""
    console, sources = make_console(), measure.behind_pins(design)
    with progress_bar(console) as bar:
        move = mover(bar, design.name, f"{device}: ")
        built = measure.build(sources, device, budget, seed, limit,
                              lambda done: move(done, len(measure.STEPS), (*measure.STEPS, "")[done]))
    tools = {"yosys": yosys.find()[1], "nextpnr": router}
    make_folder("out", folder)
    files.write(folder / f"{design.name}.bit", built.bitstream.read_bytes())
    data = asdict(built) | {"bitstream": f"{design.name}.bit"}
    files.write_json(folder / f"{design.name}.json", {
        "name": design.name, "design": design.as_dict(), "budget": budget, "seed": seed, "tools": tools} | data)
    console.print(table(design.name, built))
    console.print(path(built), markup=False, highlight=False)
    console.print(f"{folder / f'{design.name}.bit'}, {folder / f'{design.name}.json'}; {tools_text(tools)}",
                  markup=False, soft_wrap=True)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
