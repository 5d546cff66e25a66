"""What parity of an accelerator's memories takes of the clock: the longest path of each memory with and without it.

    python -m synth fetch
    python -m benchmarks.parity                    # of --preset small; --json parity.json

The part around each memory as it stands in the machine, mapped by `--recipe`, its inputs and outputs at registers, no
wires, by OpenSTA: from the ports of the units to the memory's, where parity is made, and from what the memory gives to
whether it is broken, where it is looked at. Reading a memory takes what `synth.measure.timing` assumes.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hbfp import files, generator
from hbfp.manifest import Manifest
from hbfp.options import design_from_values
from hbfp.presets import SYSTEMS
from hbfp.system import Accelerator
from synth.measure import partition, timing
from synth.tools import library, opensta, recipes

#: The parts that have memories with parity.
PARTS = ("v_memory", "x_memory", "w_memory", "p_memory")


def paths(system, recipe, cells):
    """Kind of a part -> the longest path through it."""
    folder = generator.emitted(system.name, ["--top", "accelerator", *system.words(), *generator.MEASURED])
    manifest = Manifest.load(folder)
    units = partition.units((folder / manifest.verilog).read_text(), manifest)
    by_name = {each.top: each for each in units}
    return {each.kind: timing.longest_path(each, by_name, recipe, cells) for each in units if each.kind in PARTS}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parity", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=SYSTEMS, default="small", help="the machine (default %(default)s)")
    parser.add_argument("--recipe", choices=recipes.CELL_RECIPES, default="speed", help="default %(default)s")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    args, cells = parser.parse_args(), library.default()
    if not cells or not opensta.find():
        parser.error("needs OpenSTA and a library: python -m synth fetch")
    system = design_from_values(SYSTEMS[args.preset], Accelerator)
    found = [paths(replace(system, parity=parity), args.recipe, cells) for parity in (False, True)]
    table = Table("part", "without, ns", "with, ns", "its path")
    rows = {}
    for part in PARTS:
        without, there = (each[part] for each in found)
        rows[part] = {"title": part.split("_")[0].upper(), "plain": without.period, "guarded": there.period}
        table.add_row(part, f"{without.period:.2f}", f"{there.period:.2f}", str(there))
    Console().print(table)
    if args.json:
        files.write_json(args.json, {"parts": rows})


if __name__ == "__main__":
    main()
