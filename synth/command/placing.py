"""What commands share that place and route a whole design on an ECP5."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hbfp import files
from hbfp.ecp5 import DEVICES
from hbfp.values import OptionError, whole

from ..measure.whole import STEPS, Built, Sources, build
from ..report.bitstream import path, table
from ..report.tables import tools_text
from ..tools import nextpnr, yosys
from .options import make_console, mover, progress_bar


def add_placing_options(parser: argparse.ArgumentParser, limit: int) -> None:
    """Add DSP blocks, the seed, and a limit of seconds, which :func:`budget` and :func:`placing` read."""
    parser.add_argument("--dsps", metavar="N", help="DSP blocks for multipliers, the widest first; the others become "
                        "carry chains, 0 to what the device has (default: that)")
    parser.add_argument("--seed", metavar="N", default=nextpnr.SEED, help="of the placement (default %(default)s)")
    parser.add_argument("--limit", metavar="S", default=limit, help="seconds for nextpnr (default %(default)s)")


def budget(args: argparse.Namespace, device: str) -> int:
    """DSP blocks that multipliers may take of a device; OptionError if it has fewer."""
    most = DEVICES[device].dsps
    return most if args.dsps is None else whole("dsps", args.dsps, 0, most)


def placing(args: argparse.Namespace) -> tuple[int, int]:
    """Seed and limit; OptionError if they are none."""
    return whole("seed", args.seed, 1, 1 << 30), whole("limit", args.limit, 1, 1 << 20)


def router() -> str:
    """The version of nextpnr; OptionError without."""
    if (found := nextpnr.find("ecp5")) is None:
        raise OptionError("nextpnr for ECP5 is needed: pip install 'hbfp[fpga]'")
    return found[1]


def placed(name: str, sources: Sources, device: str, blocks: int, seed: int, limit: int) -> Built:
    """Build a design of this name in sight of the user, and print what it takes; SynthError as of
    :func:`~synth.measure.whole.build`.
    """
    console = make_console()
    with progress_bar(console) as bar:
        move = mover(bar, name, f"{device}: ")
        built = build(sources, device, blocks, seed, limit,
                      lambda done: move(done, len(STEPS), (*STEPS, "")[done]))
    console.print(table(name, built))
    console.print(path(built), markup=False, highlight=False)
    return built


def keep(folder: Path, name: str, built: Built, about: Mapping[str, Any]) -> None:
    """Write bitstream and figures into a folder that is there, with what else is to be said of them, and say where."""
    tools = {"yosys": yosys.find()[1], "nextpnr": router()}
    bits, figures = folder / f"{name}.bit", folder / f"{name}.json"
    files.write(bits, built.bitstream.read_bytes())
    files.write_json(figures, {"name": name, **about, "tools": tools} | asdict(built) | {"bitstream": bits.name})
    make_console().print(f"{bits}, {figures}; {tools_text(tools)}", markup=False, soft_wrap=True)
