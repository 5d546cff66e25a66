"""Utilisation of the core, measured on its Verilog and predicted by the formula of golden.perf.cycles.

    python -m benchmarks.utilisation                    512 x 512 x 512 on 32 x 32
    python -m benchmarks.utilisation --rows 8 --block 1,8 --size 128,128,128
"""

import sys
from pathlib import Path

import numpy as np

from cosim.emit import EmitError, emit
from cosim.simulate.simulation import Simulation
from cosim.simulate.verilator import BuildError
from cosim.work.device import Core
from golden.core.device import Golden
from golden.perf.cycles import product_commands, product_cycles, timeline
from hbfp import files
from hbfp.command import Parser
from hbfp.options import add_design_options, design_from_args
from hbfp.values import OptionError


def _size(text):
    words = text.split(",")
    if len(words) != 3 or not all(word.isdecimal() and 1 <= int(word) <= 65536 for word in words):
        raise OptionError(f"--size {text}: must be M,K,N, each 1 to 65536")
    return tuple(map(int, words))


def measure(design, size):
    """Run one product; a dict of what was predicted and measured."""
    count, terms, width = size
    manifest = emit(design)
    core = Core(Simulation(manifest))
    rng = np.random.default_rng(0)
    shapes = (count, terms), (terms, width)
    if design.arithmetic == "int":
        x, w = (rng.integers(-design.format.limit, design.format.limit + 1, shape) for shape in shapes)
    else:
        x, w = (rng.standard_normal(shape, np.float32) for shape in shapes)
    golden = Golden(design)
    if design.blocked:
        x, w = golden.encode(x), golden.encode(w, -2)
    core.simulation.reset()
    got, want = core.matmul(x, w), golden.matmul(x, w)
    traffic = core.last_run.traffic["i_x"]
    macs, peak = count * terms * width, design.rows * design.cols
    starts, _, _ = timeline(design, manifest.latency, product_commands(design, *size))
    return {"mismatches": int((got.view(np.uint8) != want.view(np.uint8)).sum()),
            "cycles measured": core.last_run.cycles,
            "cycles predicted": product_cycles(design, manifest.latency, *size),
            "cycles from the first row of X to the last": traffic.last - traffic.first + 1,
            "first row of X predicted": starts[0],
            "utilisation, steady state": macs / peak / (traffic.last - traffic.first + 1),
            "utilisation, fill and read-out included": macs / peak / core.last_run.cycles}


def main(argv=None):
    """Run the command; return its exit status, 1 if the prediction is wrong or a bit differs."""
    parser = Parser(prog="python -m benchmarks.utilisation", description=__doc__)
    add_design_options(parser)
    parser.add_argument("--size", default="512,512,512", metavar="M,K,N", help="of the product")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    args = parser.parse_args(argv)
    try:
        figures = measure(design_from_args(args), _size(args.size))
    except (OptionError, EmitError, BuildError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    if args.json:
        files.write_json(args.json, figures)
    for name, value in figures.items():
        print(f"{name:<44}{value:>12,}" if isinstance(value, int) else f"{name:<44}{value:>12.3%}")
    return int(figures["mismatches"] > 0 or figures["cycles measured"] != figures["cycles predicted"])


if __name__ == "__main__":
    sys.exit(main())
