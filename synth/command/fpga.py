"""``python -m synth fpga``: LUTs, carries, DSP blocks, flip-flops, block RAMs and clocks, as ratios to FP32 too.

With ``--versus`` the largest core of each number: :mod:`synth.command.versus`.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.console import Console

from hbfp import files
from hbfp.command import Parser, run
from hbfp.design import Design
from hbfp.values import OptionError, choice, make_folder, refuse, several, words_of, writable_folder

from ..compare import fpga
from ..measure.fpga import FPGA_UNITS
from ..report.fpga_table import table
from ..report.tables import tools_text
from ..tools import nextpnr, recipes, yosys
from ..tools.errors import FAILURES
from . import versus
from .options import jobs, mover, progress_bar

EXAMPLES = """\
examples:
  python -m synth fpga --dsp yes                       ECP5: elements, groups and 8 x 8 cores (with --dsp no: long)
  python -m synth fpga --family ice40 --clock element
  python -m synth fpga --family xc7 --units core --mantissa 8 --against fp32
  python -m synth fpga --versus                        the largest core of each number on an LFE5U-85F
  python -m synth fpga --versus --numbers hbfp8,fp16 --place hbfp8,fp16
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth fpga", epilog=EXAMPLES,
                    description="Counts of FPGA cells by Yosys, clocks by nextpnr; against FP32 of the same generator.")
    parser.add_argument("--family", metavar="NAME", default="ecp5", help="ecp5 (default), ice40 or xc7 (no clock)")
    parser.add_argument("--dsp", metavar="NAME", default="both", help="yes, no or both (default)")
    parser.add_argument("--units", metavar="LIST", default=",".join(FPGA_UNITS),
                        help="element,group,core (default all)")
    parser.add_argument("--clock", metavar="LIST", default="", help="units that are placed and routed (default none)")
    parser.add_argument("--mantissa", metavar="LIST", default="4,6,8", help="of the block formats (default 4,6,8)")
    parser.add_argument("--against", metavar="LIST", default=",".join(fpga.ARITHMETICS),
                        help="of int, bf16, fp32 (all)")
    parser.add_argument("--rows", metavar="N", default="8", help="of a square core (default 8)")
    parser.add_argument("--group", metavar="A,B", help="as python -m gen")
    parser.add_argument("--multiplier", metavar="NAME", default="plain", help="plain (default) or recoded")
    parser.add_argument("--jobs", metavar="N", default=2, help="processes (default 2)")
    parser.add_argument("--out", metavar="DIR", default=str(files.output("fpga")), help="folder of FAMILY.json")
    versus.add_options(parser)
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    if args.versus:
        return versus.prepare(args)
    for name in versus.OPTIONS:
        if (value := getattr(args, name)) is not None:
            raise refuse(name, value, "only with --versus")
    family = choice("family", args.family, recipes.FAMILIES)
    kinds = {"yes": [family], "no": [family + "-logic"], "both": [family, family + "-logic"]}
    kinds = kinds[choice("dsp", args.dsp, kinds)]
    args.jobs = jobs(args)
    units, clocked = (several(name, getattr(args, name), FPGA_UNITS) for name in ("units", "clock"))
    words_of("units", args.units)
    values = {"rows": args.rows, "group": args.group, "multiplier": args.multiplier}
    against = several("against", args.against, fpga.ARITHMETICS)
    found = fpga.designs(values, words_of("mantissa", args.mantissa), against)
    folder = writable_folder("out", args.out)
    if clocked and nextpnr.device(family) and not nextpnr.find(family):
        raise OptionError("--clock: needs nextpnr: pip install 'hbfp[fpga]'")
    return partial(work, args, family, kinds, found, units, clocked, folder)


def work(args: argparse.Namespace, family: str, kinds: Sequence[str], found: Mapping[str, Design], units: Sequence[str],
         clocked: Sequence[str], folder: Path) -> None:
    """Measure all designs and write the table, in sight of the user."""
    console = Console()
    with progress_bar(console) as bar:
        progress = mover(bar, f"Yosys{' and nextpnr' if clocked else ''}, {family}")
        rows = fpga.measure(found, units, kinds, clocked, args.jobs, progress)
    tools = {"yosys": yosys.find()[1]}
    if clocked and (router := nextpnr.find(family)):
        tools["nextpnr"] = router[1]
    devices = {kind: device[0] for kind in kinds if (device := nextpnr.device(kind))}
    data = {"family": family, "devices": devices, "tools": tools, "multiplier": args.multiplier,
            "designs": {name: each.as_dict() for name, each in found.items()},
            "rows": [asdict(row) | {"ratios": fpga.ratios(rows, row)} for row in rows]}
    make_folder("out", folder)
    files.write_json(folder / f"{family}.json", data)
    console.print(table(rows, family, f"{family}, {args.rows} x {args.rows}"))
    console.print(f"{folder / f'{family}.json'}; {tools_text(tools)}")


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
