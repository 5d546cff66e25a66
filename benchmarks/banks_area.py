"""Area of a core with its memories against the depth of its banks, and the traffic and the cycles that a depth costs.

    python -m synth fetch
    python -m benchmarks.banks_area                                     # --json banks.json, --picture banks.png
    python -m benchmarks.banks_area --mantissa 8 --depth 32,64 --banks 1 --against no
    python -m benchmarks.banks_area --depth 32 --banks 1 --accumulate aligned --block 32,32

Cores of 32 x 32 with blocks (1, 32) unless `--block` says otherwise, OSU018, recipe `area`; the baseline is the lean
FP32 core in groups of 8 x 8 with the same depth, banks and weight tiles, whose sums are FP32 whatever `--accumulate`
says. Traffic is what a core reads for 1000 multiply-accumulates: weights once in `depth` rows, X once in 32 columns,
with their exponents. Busy is the share of cycles, by the cycle model, in which X is taken in a product of `--product`
M,K,N.
"""

import argparse
import itertools
from pathlib import Path

from rich.progress import Progress
from rich.table import Table

from golden.perf.cycles import product_cycles
from hbfp import files
from hbfp.design import ACCUMULATES, Design
from hbfp.format import HBFPFormat
from synth.command.options import make_console
from synth.measure import area, memories
from synth.report.plots import new_figure
from synth.tools import library


def numbers(text):
    """Whole numbers with commas between them."""
    return [int(word) for word in text.split(",")]


def traffic(design):
    """Bytes of weights and of X for 1000 multiply-accumulates."""
    bits = design.lane_width + (design.format.exponent / design.format.terms if design.blocked else 0)
    return [1000 * bits / 8 / reused for reused in (design.depth, design.cols)]


def point(design, cells, bit, product):
    """Area a multiply-accumulate without and with memories, traffic, and the share of busy cycles."""
    report = area.measure(design, "area", cells, bit=bit)
    latency = area.generate(design)[1].latency
    count, terms, width = product
    ideal = count * terms * width / (design.rows * design.cols)
    scopes, (weights, x) = report.scopes(), traffic(design)
    return {"design": design.as_dict(), "core": scopes["core"], "core and memories": scopes["core and memories"],
            "bits": report.core.bits / report.macs, "weight bytes": weights, "x bytes": x,
            "busy": ideal / product_cycles(design, latency, count, terms, width)}


def main():
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("mantissa", "8,6,4"), ("depth", "32,64,128,256,512"), ("banks", "1,2")):
        parser.add_argument(f"--{name}", type=numbers, default=numbers(usual), help=f"comma between (default {usual})")
    parser.add_argument("--accumulate", choices=ACCUMULATES, default="fp32", help="sums of HBFP (default fp32)")
    parser.add_argument("--block", type=numbers, default=[1, 32], help="block of HBFP (default 1,32)")
    parser.add_argument("--group", type=numbers, help="of HBFP (default 8,4)")
    parser.add_argument("--convert-lanes", type=int, default=0, help="of HBFP (default 0: a lane a row)")
    parser.add_argument("--weight-tiles", type=int, default=2, help="of all cores (default 2)")
    parser.add_argument("--product", type=numbers, default=[512, 512, 512], help="M,K,N (default 512,512,512)")
    parser.add_argument("--against", choices=("fp32", "no"), default="fp32", help="baseline (default fp32)")
    parser.add_argument("--memory-bit", type=float, help="NAND2 a bit (default: as macros)")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--picture", type=Path, help="also draw area and traffic against depth there")
    args = parser.parse_args()
    cells = library.default()
    if cells is None:
        parser.error("no cell library: run `python -m synth fetch` first")
    places = [(depth, banks) for banks in args.banks for depth in args.depth]
    found = {}
    with Progress(transient=True) as progress:
        task = progress.add_task("measuring", total=len(places) * (len(args.mantissa) + (args.against == "fp32")))
        for depth, banks in places:
            designs = {f"HBFP{bits}": Design(format=HBFPFormat(mantissa=bits, block=tuple(args.block)), depth=depth,
                                             multiplier="recoded", banks=banks, accumulate=args.accumulate,
                                             weight_tiles=args.weight_tiles, group=args.group and tuple(args.group),
                                             convert_lanes=args.convert_lanes)
                       for bits in args.mantissa}
            if args.against == "fp32":
                designs["FP32"] = Design(arithmetic="fp32", multiplier="recoded", group=(8, 8), depth=depth,
                                         banks=banks, weight_tiles=args.weight_tiles)
            for name, design in designs.items():
                found[name, depth, banks] = point(design, cells, args.memory_bit, args.product)
                progress.advance(task)
    table = Table("", "banks", "depth", "core", "memory bits", "with memories", "FP32 / that", "weights, bytes",
                  "X, bytes", "busy", title="NAND2-equivalents a MAC, memories "
                  f"{memories.label(args.memory_bit)}; bytes in 1000 MACs")
    for (name, depth, banks), each in found.items():
        base = found.get(("FP32", depth, banks))
        each["ratio"] = base["core and memories"] / each["core and memories"] if base else None
        table.add_row(name, str(banks), str(depth), f"{each['core']:.1f}", f"{each['bits']:.1f}",
                      f"{each['core and memories']:.1f}", f"{each['ratio']:.2f}" if base else "",
                      f"{each['weight bytes']:.1f}", f"{each['x bytes']:.1f}", f"{each['busy']:.1%}")
    make_console().print(table)
    rows = [{"name": name, **each} for (name, _, _), each in found.items()]
    if args.json:
        files.write_json(args.json, rows)
    if args.picture:
        draw(rows, args.picture)


def draw(rows, path):
    """Area with memories against the bytes that are read, a colour for each number and dashes for two banks."""
    figure, axes = new_figure()
    names = list(dict.fromkeys(row["name"] for row in rows if row["name"] != "FP32"))
    for name, banks in itertools.product(names, sorted({row["design"]["banks"] for row in rows})):
        mine = [row for row in rows if (row["name"], row["design"]["banks"]) == (name, banks)]
        axes.plot([row["weight bytes"] + row["x bytes"] for row in mine], [row["core and memories"] for row in mine],
                  "o-" if banks == 1 else "o--", color=f"C{names.index(name)}",
                  label=f"{name}, {banks} bank{'s' * (banks > 1)}")
        place = {"xytext": (-4, -9), "ha": "right"} if banks == 1 else {"xytext": (4, 4)}
        for row in mine:
            axes.annotate(row["design"]["depth"], (row["weight bytes"] + row["x bytes"], row["core and memories"]),
                          textcoords="offset points", fontsize=7, **place)
    axes.set(xlabel="bytes of weights and X in 1000 multiply-accumulates, by depth",
             ylabel="NAND2 a MAC, memories included", ylim=(0, None))
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
