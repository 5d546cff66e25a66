"""``python -m synth bitstream``: a whole core on an ECP5, placed and routed, with its clock and its bitstream."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hbfp import files
from hbfp.command import Parser, run
from hbfp.design import Design
from hbfp.ecp5 import DEVICES
from hbfp.options import add_design_options, design_from_args
from hbfp.values import choice, make_folder, writable_folder

from ..measure.whole import behind_pins
from ..tools.errors import FAILURES
from .options import free_clock
from .placing import add_placing_options, budget, keep, placed, placing, router

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
                        help=f"{', '.join(DEVICES)} (default: %(default)s)")
    add_placing_options(parser, 3600)
    parser.add_argument("--out", metavar="DIR", help="folder of NAME.bit and NAME.json (default: build/bitstream)")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    design = design_from_args(args)
    free_clock(design, "bitstream")
    device = choice("device", args.device, DEVICES)
    blocks, (seed, limit) = budget(args, device), placing(args)
    folder = writable_folder("out", files.output("bitstream") if args.out is None else args.out)
    router()
    return partial(work, design, device, blocks, seed, limit, folder)


def work(design: Design, device: str, blocks: int, seed: int, limit: int, folder: Path) -> None:
    """Build it in sight of the user, print what it takes, write the bitstream and the figures."""
    built = placed(design.name, behind_pins(design), device, blocks, seed, limit)
    make_folder("out", folder)
    keep(folder, design.name, built, {"design": design.as_dict(), "budget": blocks, "seed": seed})


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
