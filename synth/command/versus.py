"""``python -m synth fpga --versus``: the largest core of each number on one device, its clock, what binds it."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hbfp import files
from hbfp.command import Parser
from hbfp.values import OptionError, choice, make_folder, several, whole, writable_folder

from ..compare.versus import NUMBERS, Largest, compared, largest, sizes
from ..measure import devices
from ..measure import whole as placed
from ..report.plots import save
from ..report.tables import tools_text
from ..report.versus import picture, table
from ..tools import nextpnr, yosys
from .options import make_console, mover, progress_bar

#: Sizes of cores that are placed.
SIZES = ("largest", "small")
#: Option -> its default, of those that only this comparison has.
OPTIONS = {"numbers": ",".join(NUMBERS), "share": 75, "place": "", "size": "largest",
           "placer": "static", "seed": nextpnr.SEED, "limit": 7200}


def add_options(parser: Parser) -> None:
    """Add the options of the comparison to those of ``python -m synth fpga``."""
    group = parser.add_argument_group("the largest core of each number")
    group.add_argument("--versus", action="store_true", help="compare them; of the options above only --family and "
                       "--out count")
    def add(name, metavar, text):
        group.add_argument(f"--{name}", metavar=metavar, help=text.format(OPTIONS[name]))
    add("numbers", "LIST", "which numbers (default all: {})")
    add("share", "P", "percent of LUTs, flip-flops and block RAMs that a core may take, 1 to 100 (default {})")
    add("place", "LIST", "numbers whose cores are placed and routed, on ECP5 alone (default none)")
    add("size", "NAME", "of the cores that are placed: largest, twenty minutes or more each, or small, minutes each: "
        "8 x 4, of floats 2 x 4 (default {})")
    add("placer", "NAME", "of nextpnr: static, or heap, which may place cores that the former does not (default {})")
    add("seed", "N", "of the placement (default {})")
    add("limit", "S", "seconds for each placement (default {})")


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    family = choice("family", args.family, devices.DEVICES)
    given = {name: default if getattr(args, name) is None else getattr(args, name)
             for name, default in OPTIONS.items()}
    numbers, routed = (several(name, str(given[name]), NUMBERS) for name in ("numbers", "place"))
    if not numbers:
        raise OptionError("--numbers : must name one at least")
    if stray := [name for name in routed if name not in numbers]:
        raise OptionError(f"--place {stray[0]}: must be one of the numbers, {', '.join(numbers)}")
    if routed and family != "ecp5":
        raise OptionError(f"--place {','.join(routed)}: there is no router for {family}")
    size = choice("size", given["size"], SIZES)
    placer = choice("placer", given["placer"], nextpnr.PLACERS)
    share = whole("share", given["share"], 1, 100) / 100
    seed, limit = whole("seed", given["seed"], 1, 1 << 30), whole("limit", given["limit"], 1, 1 << 20)
    folder = writable_folder("out", args.out)
    if family == "ecp5" and nextpnr.find(family) is None:
        raise OptionError("--versus: needs nextpnr: pip install 'hbfp[fpga]'")
    return partial(work, family, numbers, routed, size, share, placer, seed, limit, folder)


def work(family: str, numbers: Sequence[str], routed: Sequence[str], size: str, share: float, placer: str, seed: int,
         limit: int, folder: Path) -> None:
    """Count, place and compare in sight of the user; write JSON and picture."""
    console = make_console()
    device, there = devices.DEVICES[family]
    rows = []
    with progress_bar(console) as bar:
        move, total, done = mover(bar, device, f"{device}: "), len(numbers) + len(routed), 0

        def count(design, blocks):
            move(done, total, f"{NUMBERS[name].title}, {design.rows} x {design.cols}")
            return devices.count(family, design, blocks)
        for name in numbers:
            found = largest(name, count, there, share)
            done += 1
            clock = None
            if name in routed:
                placing = (found.counted.rows, found.counted.cols) if size == "largest" else sizes(name)[0]
                move(done, total, "{}, {} x {}, placing".format(NUMBERS[name].title, *placing))
                clock = _clock(found, placing, device, placer, seed, limit)
                done += 1
            rows.append(found.as_dict() | (clock or {"clock": None, "placed": None}))
    tools = {"yosys": yosys.find()[1]}
    if family == "ecp5" and (router := nextpnr.find(family)):
        tools["nextpnr"] = router[1]
    rows = compared(rows)
    make_folder("out", folder)
    path = folder / f"versus-{family}.json"
    files.write_json(path, {"device": device, "share": share, "placer": placer, "seed": seed, "tools": tools,
                            "rows": rows})
    console.print(table(rows, f"{device}, at most {share:.0%} of LUTs, flip-flops and block RAMs"))
    shown = save(picture(rows, device), path.with_suffix(".png"))
    console.print(f"{path}, {shown}; {tools_text(tools)}", markup=False, soft_wrap=True)


def _clock(found: Largest, size: tuple[int, int], device: str, placer: str, seed: int, limit: int) -> dict[str, Any]:
    """Clock in MHz of a number's core of a size, and its critical path."""
    sources = placed.behind_pins(NUMBERS[found.name].design(*size), nextpnr.PLACERS[placer])
    built = placed.build(sources, device, int(found.device.dsps), seed, limit, lambda done: None)
    return {"clock": built.clock, "placed": list(size), "path": built.path, "seconds": built.seconds}
