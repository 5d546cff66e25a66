"""Cycles of matrix products of random shapes, by the cycle model, beside SCALE-Sim's formula.

    python -m benchmarks.shapes                       the shapes of python -m cosim gemms --count 200, 32 x 32
    python -m benchmarks.shapes --rows 16 --block 1,16 --count 50

The formula knows no memory: a product whose weights have few tiles is over before DRAM has answered twice. So shapes
are counted by the tiles of their weights.
"""

from collections import defaultdict
from functools import partial

from rich.console import Console
from rich.table import Table

from cosim.command.gemms import shape
from golden.lower.command import lowered
from golden.perf.accelerator.command import add_memory_options, memory_from_args
from golden.perf.accelerator.model import times
from golden.perf.accelerator.scale_sim import scale_sim
from hbfp.command import Parser, run
from hbfp.manifest import core_latency
from hbfp.options import add_system_options, system_from_args
from hbfp.program import Product
from hbfp.system import Accelerator
from hbfp.values import whole, writable_file

from .tables import add_json, write

#: Tiles of weights: name of a row -> least and most.
ROWS = {"1": (1, 1), "2": (2, 2), "3": (3, 3), "4 to 8": (4, 8), "9 or more": (9, 1 << 30)}


def prepare(args):
    """From parsed arguments to the work; OptionError if a value is not valid."""
    accelerator = system_from_args(args, Accelerator)
    return partial(work, accelerator, memory_from_args(args, accelerator), whole("count", args.count, 1, 100_000),
                   whole("most", args.most, 1, 4096), args.json and writable_file("json", args.json))


def work(accelerator, memory, count, most, path=None):
    """Lower, step through, print."""
    core = accelerator.core
    latency = core_latency(core)
    found = defaultdict(list)    # row -> cycles, and those of the formula
    for m, k, n in (shape(number, most) for number in range(count)):
        tiles = -(-k // core.rows) * -(-n // accelerator.lanes)
        (row,) = (name for name, (least, last) in ROWS.items() if least <= tiles <= last)
        program = lowered(f"gemm-{m}x{k}x{n}", accelerator).program
        formula = scale_sim([Product(m, k, n)], core.rows, accelerator.lanes)
        found[row].append((times(program, latency, *memory).cycles, formula))
    table = Table(title=f"{count} products on {accelerator.name}, latency {memory[0]}, {memory[1]} bytes a cycle")
    for head in ("tiles of weights", "products", "fewer cycles than the formula", "cycles", "formula"):
        table.add_column(head, justify="right")
    for row in (*ROWS, "all"):
        pairs = found[row] if row in ROWS else [pair for name in ROWS for pair in found[name]]
        cycles, formula = (sum(pair[which] for pair in pairs) for which in (0, 1))
        table.add_row(row, str(len(pairs)), str(sum(mine < other for mine, other in pairs)), f"{cycles:,}",
                      f"{formula:,}")
    Console().print(table)
    write(path, table)


def main(argv=None):
    """Run the command; return its exit status."""
    parser = Parser(prog="python -m benchmarks.shapes", description=__doc__)
    add_system_options(parser, Accelerator, "accelerator")
    add_memory_options(parser)
    parser.add_argument("--count", default="200", metavar="N", help="products (default 200)")
    parser.add_argument("--most", default="256", metavar="N", help="most rows, columns, terms (default 256)")
    add_json(parser)
    return run(parser, prepare, argv)


if __name__ == "__main__":
    raise SystemExit(main())
