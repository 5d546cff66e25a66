"""Both texts of a design side by side: their lines, the time to write them, and simulated cycles a second.

    python -m benchmarks.texts                  the default core, and an accelerator of 8 x 8: lines and times
    python -m benchmarks.texts --simulate       and the digits network on a core of 8 x 8 in Verilator
    python -m benchmarks.texts --area           and the areas of such a core in NAND2, recoded multipliers, OSU018

Times are of a processor, the least of several runs in turns, so that what else the machine does meets both texts.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from gen.readable import TEXTS
from hbfp import files

#: Name -> options of ``python -m gen``.
DESIGNS = {"default core": [], "accelerator 8 x 8": ["--top", "accelerator", "--rows", "8", "--block", "1,8"]}
SIMULATED = ["--rows", "8", "--block", "1,8"]
MAPPED = [*SIMULATED, "--multiplier", "recoded"]
REPEATS = 3


def emit(words, text, folder):
    """Seconds of a processor that ``python -m gen`` takes, and the lines that it writes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "gen", *words, "--text", text, "--out", folder], check=True,
                   stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    verilog = json.loads((Path(folder) / "manifest.json").read_text())["verilog"]
    lines = sum(1 for line in (Path(folder) / verilog).read_text().splitlines() if line.strip())
    return sum(getattr(after, part) - getattr(before, part) for part in ("ru_utime", "ru_stime")), lines


def both(words, place):
    """Text -> the folder in ``place`` with the design in it."""
    folders = {text: Path(place) / f"{text}-{len(words)}" for text in TEXTS}
    for text, folder in folders.items():
        emit(words, text, folder)
    return folders


def simulate(folders):
    """Text -> cycles a second of a processor, the most of several runs in turns."""
    from cosim.manifest import Manifest
    from cosim.simulate.simulation import Simulation
    from cosim.work.device import Core
    from cosim.work.network import workload
    cores, found = {text: Core(Simulation(Manifest.load(folder))) for text, folder in folders.items()}, {}
    for _ in range(REPEATS):
        for text, core in cores.items():
            outcome, _ = workload(core)
            found[text] = max(found.get(text, 0), outcome.cycles / outcome.notes["cpu_seconds"])
    return found


def areas(folder):
    """Component -> NAND2-equivalents, and all of them."""
    from hbfp.manifest import Manifest
    from synth.measure.area import measure_unit, owners
    from synth.measure.partition import units
    from synth.tools import library
    manifest, cells, found = Manifest.load(folder), library.default(), {}
    if cells is None:
        raise SystemExit("no cell library: run `python -m synth fetch` first")
    parts = units((folder / manifest.verilog).read_text(), manifest)
    owner = owners(parts)
    for part in parts:
        area = 0 if part.kind == "ram" else measure_unit(part, "area", cells).area
        for name, count in owner[part.top].items():
            found[name] = found.get(name, 0) + area * count
    return found | {"all": sum(found.values())}


def main():
    """Print a row for each design and text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.texts", description=__doc__.splitlines()[0])
    parser.add_argument("--simulate", action="store_true", help="also build models with Verilator, and run them")
    parser.add_argument("--area", action="store_true", help="also map both to the cells of OSU018")
    parser.add_argument("--json", type=Path, help="also write what is printed there")
    args, rows = parser.parse_args(), []

    def tell(design, text, name, figure, way):
        print(f"{design:<20}{text:<10}{name:<18}{figure:>14{way}}", flush=True)
        rows.append({"design": design, "text": text, "of": name, "figure": figure})

    with tempfile.TemporaryDirectory() as place:
        for name, words in DESIGNS.items():
            runs = [{text: emit(words, text, f"{place}/{text}") for text in TEXTS} for _ in range(REPEATS)]
            for text in TEXTS:
                seconds, lines = min(run[text] for run in runs)
                tell(name, text, "lines", lines, ",")
                tell(name, text, "seconds", seconds, ".2f")
        if args.simulate:
            for text, speed in simulate(both(SIMULATED, place)).items():
                tell("core 8 x 8", text, "cycles a second", speed, ",.0f")
        for text, folder in both(MAPPED, place).items() if args.area else ():
            for component, area in areas(folder).items():
                tell("core 8 x 8", text, f"{component}, NAND2", area, ",.2f")
    if args.json:
        files.write_json(args.json, rows)


if __name__ == "__main__":
    main()
