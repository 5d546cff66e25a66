"""What a second context and a dispatcher add to an accelerator: `area` recipe on OSU018, without memories.

    python -m synth fetch
    python -m benchmarks.dispatched_area                    # --json dispatched.json

Three accelerators of 32 x 32, HBFP8: of one context, of two, and of two behind a dispatcher of 256 requests. Only
modules that are not in all three are synthesised; what a kind of unit takes is that of all its modules that are not.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from hbfp import files, generator
from hbfp.manifest import Manifest
from hbfp.system import Accelerator
from synth.measure import partition
from synth.measure.area import measure_unit
from synth.tools import library

#: Requests that the dispatcher holds.
DEPTH = 256


def parts(system):
    """Its modules but memories, by their names."""
    folder = generator.emitted(system.name, ["--top", "accelerator", *system.words(), *generator.MEASURED])
    manifest = Manifest.load(folder)
    found = partition.units((folder / manifest.verilog).read_text(), manifest)
    return {part.top: part for part in found if part.kind != "ram"}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dispatched_area", description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures there")
    args = parser.parse_args()
    cells = library.default()
    if cells is None:
        parser.error("no cell library: run `python -m synth fetch` first")
    one = Accelerator()
    two = replace(one, contexts=2)
    systems = {"one": parts(one), "two": parts(two), "dispatched": parts(replace(two, dispatch=DEPTH))}
    tops = set.union(*map(set, systems.values())) - set.intersection(*map(set, systems.values()))
    every = {top: part for found in systems.values() for top, part in found.items() if top in tops}
    areas = {top: measure_unit(part, "area", cells).area
             for top, part in track(every.items(), "measuring", transient=True)}
    rows = {kind: dict.fromkeys(systems, 0) for kind in sorted({part.kind for part in every.values()})}
    for name, found in systems.items():
        for top in found.keys() & tops:
            rows[found[top].kind][name] += areas[top] * found[top].count
    rows["all"] = {name: sum(each[name] for each in rows.values()) for name in systems}
    table = Table("unit", *systems)
    for kind, each in rows.items():
        table.add_row(kind, *(f"{each[name]:,.0f}" for name in systems))
    Console().print(table)
    if args.json:
        files.write_json(args.json, [{"unit": kind} | each for kind, each in rows.items()])


if __name__ == "__main__":
    main()
