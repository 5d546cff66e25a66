"""``python -m gen soc``: a CPU, its memory and the accelerator as one system for a board, by LiteX.

It writes what python -m gen --top accelerator writes, and beside it LiteX's Verilog, constraints and script for Yosys
and nextpnr, and hbfp_soc.h, with which firmware is compiled; the firmware, as bytes, comes with --firmware into the
ROM. With --simulated the SDRAM and the serial line are models for a simulation. None of it was run on a board.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hbfp.command import Parser, run
from hbfp.extras import lacking
from hbfp.files import output
from hbfp.manifest import FILE
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import OptionError, choice, number, readable_file, refuse, writable_folder

from ..tops import TOPS, make_top
from ..write import texts, write_files
from . import boards
from .boards import BOARDS

EXAMPLES = """\
examples:
  python -m gen soc --board ulx3s --rows 8 --block 1,8 --pipeline 6 --fabric fpga
  python -m gen soc --board ulx3s --rows 4 --block 1,4 --device LFE5U-45F --clock 40
"""
#: Clocks in MHz that the PLL and the SDRAM take.
CLOCKS = (10, 100)


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m gen soc", epilog=EXAMPLES, description=__doc__.split("\n\n", 1)[1])
    add_system_options(parser, Accelerator, "accelerator")
    group = parser.add_argument_group("system")
    group.add_argument("--board", metavar="NAME", default="ulx3s", help=f"{', '.join(BOARDS)} (default ulx3s)")
    group.add_argument("--device", metavar="NAME", help="the board's FPGA (default: its largest)")
    low, high = CLOCKS
    group.add_argument("--clock", metavar="MHZ", default="50", help=f"of all of it, {low} to {high} (default 50)")
    group.add_argument("--firmware", metavar="FILE", help="bytes of the ROM, which the CPU begins with")
    group.add_argument("--simulated", action="store_true", help="models in place of the board's memory and serial line")
    group.add_argument("--out", metavar="DIR", help="folder for the files (default: build/soc/NAME)")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    board = BOARDS[choice("board", args.board, BOARDS)]
    device = choice("device", args.device or list(board.devices)[-1], board.devices)
    clock = number("clock", args.clock, *CLOCKS)
    rom = [] if args.firmware is None else _words(args.firmware, readable_file("firmware", args.firmware).read_bytes())
    system = system_from_args(args, Accelerator)
    folder = writable_folder("out", output("soc", system.name) if args.out is None else args.out)
    top = make_top("accelerator", system)
    return partial(_write, system, top, board, None if args.simulated else device, 1e6 * clock, rom, folder)


def _words(name, data):
    """A file of firmware as words, the lowest byte first."""
    if not 0 < len(data) <= boards.ROM:
        raise refuse("firmware", name, f"must have 1 to {boards.ROM} bytes, not {len(data)}")
    data += bytes(-len(data) % 4)
    return [int.from_bytes(data[at:at + 4], "little") for at in range(0, len(data), 4)]


def _write(system, top, board, device, frequency, rom, folder):
    """Emit the accelerator and the system, and say what was written; OptionError if the board's FPGA is too small."""
    if (line := lacking("litex")) is not None:
        raise OptionError(line)
    kind = TOPS["accelerator"]
    parameters = {name: getattr(system, name) for name in kind.options}
    found, files = texts(top, system.core, unit="accelerator", parameters=parameters, beside=kind.beside(system),
                         **kind.facts(system))
    if device is not None:
        need = boards.needed(found.memories.values(), system)
        if (line := boards.lacking(board, device, need)) is not None:
            raise refuse("device", device, line)
    from .target import write  # loads LiteX

    write_files(folder, files)
    names = write(found, device, frequency, rom, Path(folder).resolve())
    for name in (found.verilog, FILE, *names):
        print(folder / name)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv)
