"""Area and clock of the networks between pods and banks: butterfly-1, -2 and -4, crossbar, Benes, 8 to 256 ports.

    python -m synth fetch
    python -m benchmarks.networks_area
    python -m benchmarks.networks_area --ports 8,16 --width 8 --recipe speed --json networks.json
    python -m benchmarks.networks_area --ports 16 --recipe speed --whole

Every kind of switch is mapped once and counts as often as the network has it; so do the registers of settings. The
clock is that of the slowest switch between registers, by OpenSTA where there is one: wires, and what drives many
switches at once, are left out. With ``--whole`` a network is mapped in one piece, with that fan-out; this takes minutes
from 64 ports on. The last column holds the area against the size by which published power constants grow: M log2 M for
a butterfly of M = N k, 4 N log2 N for Benes, N^2 for a crossbar.
"""

import argparse
import json
import math
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from hbfp import generator
from hbfp.manifest import Manifest
from synth.measure import partition
from synth.measure.area import measure_unit
from synth.measure.timing import period
from synth.tools import library, opensta

NETWORKS = {"butterfly-1": ("butterfly", 1), "butterfly-2": ("butterfly", 2), "butterfly-4": ("butterfly", 4),
            "crossbar": ("crossbar", None), "benes": ("benes", None)}
PORTS = (8, 16, 32, 64, 128, 256)


def size(name, ports):
    """What a published power constant is multiplied by."""
    if name == "crossbar":
        return ports**2
    if name == "benes":
        return 4 * ports * math.log2(ports)
    total = ports * NETWORKS[name][1]
    return total * math.log2(total)


def measure(name, ports, width, recipe, cells, whole=False):
    """One network: NAND2-equivalents, registers among them, ns, latency, bits of settings."""
    unit, copies = NETWORKS[name]
    words = ["--unit", unit, "--pods", str(ports), "--width", str(width), *generator.MEASURED]
    folder = generator.emitted(unit, words + (["--copies", str(copies)] if copies else []))
    manifest = Manifest.load(folder)
    text = (folder / manifest.verilog).read_text()
    units = [partition.Unit(manifest.top, "whole", 1, text)] if whole else partition.units(text, manifest)
    by_name = {each.top: each for each in units}
    area = registers = clock = 0.0
    for each in units:
        if each.kind == "crossbar":
            continue    # wires alone, for which Yosys takes minutes
        one = measure_unit(each, recipe, cells)
        area, registers = area + one.area * each.count, registers + one.registers * each.count
        if each.kind in ("pick", "whole") and opensta.find():
            clock = max(clock, period(each, by_name, recipe, cells))
    return {"network": name, "ports": ports, "width": width, "recipe": recipe, "area": area, "registers": registers,
            "ns": clock or None, "latency": manifest.latency["result"], "settings": manifest.ports["route"].width,
            "per_size": area / (width / 8) / size(name, ports)}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ports", default=",".join(map(str, PORTS)), help="numbers of ports")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="names")
    parser.add_argument("--width", type=int, default=32, help="bits of a payload")
    parser.add_argument("--recipe", default="area,speed", help="of Yosys")
    parser.add_argument("--whole", action="store_true", help="map each network in one piece")
    parser.add_argument("--json", type=Path, help="also write the rows there")
    args = parser.parse_args()
    cells = library.default()
    if cells is None:
        raise SystemExit("no cell library: run `python -m synth fetch` first")
    wanted = [(name, int(ports), recipe) for recipe in args.recipe.split(",") for ports in args.ports.split(",")
              for name in args.networks.split(",")]
    rows = [measure(name, ports, args.width, recipe, cells, args.whole)
            for name, ports, recipe in track(wanted, transient=True)]
    table = Table("network", "ports", "recipe", "NAND2", "registers", "ns", "latency", "settings", "NAND2 a byte, size")
    for row in rows:
        table.add_row(row["network"], str(row["ports"]), row["recipe"], f"{row['area']:,.0f}",
                      f"{row['registers'] / row['area']:.0%}", "" if row["ns"] is None else f"{row['ns']:.2f}",
                      str(row["latency"]), f"{row['settings']:,}", f"{row['per_size']:.1f}")
    Console().print(table)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
