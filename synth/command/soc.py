"""``python -m synth soc``: the bitstream of a system for a board, which ``python -m gen soc`` has written."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from hbfp import files
from hbfp.command import Parser, run
from hbfp.values import OptionError, refuse, whole, writable_folder

from ..measure import soc
from ..measure import whole as measure
from ..report.bitstream import path, table
from ..report.tables import tools_text
from ..tools import ecp5, nextpnr, yosys
from ..tools.errors import FAILURES, SynthError
from .options import make_console, mover, progress_bar

EXAMPLES = """\
examples:
  python -m synth soc build/soc               an hour or more
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth soc", epilog=EXAMPLES, description=(
        "A system for a board, placed and routed: what it takes of the FPGA, its clock, its bitstream. A system that "
        "does not reach the clock it was written for ends in a line, and leaves no bitstream."))
    parser.add_argument("folder", metavar="FOLDER", help="as python -m gen soc has written it")
    parser.add_argument("--dsps", metavar="N", help="DSP blocks for multipliers, the widest first; the others become "
                        "carry chains, 0 to what the device has (default: that)")
    parser.add_argument("--seed", metavar="N", default=nextpnr.SEED, help="of the placement (default %(default)s)")
    parser.add_argument("--limit", metavar="S", default=4 * 3600, help="seconds for nextpnr (default %(default)s)")
    parser.add_argument("--out", metavar="DIR", help="folder of hbfp_soc.bit and .json (default: FOLDER)")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    seed, limit = whole("seed", args.seed, 1, 1 << 30), whole("limit", args.limit, 1, 1 << 20)
    dsps = None if args.dsps is None else whole("dsps", args.dsps, 0, max(each.dsps for each in ecp5.DEVICES.values()))
    folder = writable_folder("out", args.folder if args.out is None else args.out)
    return partial(work, Path(args.folder), dsps, seed, limit, folder)


def work(source: Path, dsps: int | None, seed: int, limit: int, folder: Path) -> None:
    """Build it in sight of the user, print and write what it takes.

    Raises
    ------
    OptionError
        If there is no such system, its FPGA has fewer DSP blocks, or nextpnr is missing.
    SynthError
        If a tool fails, the system does not fit, or its clock is too slow.
    """
    try:
        device, sources = soc.read(source)
    except SynthError as error:
        raise OptionError(str(error)) from None
    if device not in ecp5.DEVICES:
        raise refuse("folder", source, f"is for {device}, which is none of {', '.join(ecp5.DEVICES)}")
    most = ecp5.DEVICES[device].dsps
    budget = most if dsps is None else whole("dsps", dsps, 0, most)
    if (found := nextpnr.find("ecp5")) is None:
        raise OptionError("nextpnr for ECP5 is needed: pip install 'hbfp[fpga]'")
    console, router = make_console(), found[1]
    with progress_bar(console) as bar:
        move = mover(bar, sources.top, f"{device}: ")
        built = measure.build(sources, device, budget, seed, limit,
                              lambda done: move(done, len(measure.STEPS), (*measure.STEPS, "")[done]))
    console.print(table(sources.top, built))
    console.print(path(built), markup=False, highlight=False)
    if built.clock < built.asked:
        raise SynthError(f"the clock of {built.asked} MHz is not met: {built.clock} MHz with --seed {seed}; try "
                         "another seed, or write the system with a lower --clock")
    tools = {"yosys": yosys.find()[1], "nextpnr": router}
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{sources.top}.bit"
    files.write(folder / name, built.bitstream.read_bytes())
    files.write_json(folder / f"{sources.top}.json", {
        "name": sources.top, "budget": budget, "seed": seed, "tools": tools} | asdict(built) | {"bitstream": name})
    console.print(f"{folder / name}, {folder / f'{sources.top}.json'}; {tools_text(tools)}", markup=False,
                  soft_wrap=True)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
