"""``python -m synth soc``: the bitstream of a system for a board, which ``python -m gen soc`` has written."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hbfp.command import Parser, run
from hbfp.ecp5 import DEVICES
from hbfp.values import make_folder, refuse, whole, writable_folder

from ..measure import soc
from ..tools.errors import FAILURES, SynthError
from .placing import add_placing_options, budget, keep, placed, placing, router

EXAMPLES = """\
examples:
  python -m synth soc build/soc               twenty minutes or more
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth soc", epilog=EXAMPLES, description=(
        "A system for a board, placed and routed: what it takes of the FPGA, its clock, its bitstream. A system that "
        "does not reach the clock it was written for ends in a line, and leaves no bitstream."))
    parser.add_argument("folder", metavar="FOLDER", help="as python -m gen soc has written it")
    add_placing_options(parser, 4 * 3600)
    parser.add_argument("--out", metavar="DIR", help="folder of hbfp_soc.bit and .json (default: FOLDER)")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    seed, limit = placing(args)
    if args.dsps is not None:
        whole("dsps", args.dsps, 0, max(each.dsps for each in DEVICES.values()))
    folder = writable_folder("out", args.folder if args.out is None else args.out)
    return partial(work, args, seed, limit, folder)


def work(args: argparse.Namespace, seed: int, limit: int, folder: Path) -> None:
    """Build it in sight of the user, print and write what it takes.

    Raises
    ------
    OptionError
        If there is no such system, its FPGA has fewer DSP blocks, or nextpnr is missing.
    SynthError
        If a tool fails, the system does not fit, or its clock is too slow.
    """
    device, sources = soc.read(Path(args.folder))
    if device not in DEVICES:
        raise refuse("folder", args.folder, f"is for {device}, which is none of {', '.join(DEVICES)}")
    blocks = budget(args, device)
    router()
    built = placed(sources.top, sources, device, blocks, seed, limit)
    if built.clock < built.asked:
        raise SynthError(f"the clock of {built.asked} MHz is not met: {built.clock} MHz with --seed {seed}; try "
                         "another seed, or write the system with a lower --clock")
    make_folder("out", folder)
    keep(folder, sources.top, built, {"budget": blocks, "seed": seed})


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
