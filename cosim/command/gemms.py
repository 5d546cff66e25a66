"""``python -m cosim gemms``: matrix products of random shapes on the Verilated accelerator, bits and cycles.

A shape follows from its number alone. Each runs with DRAMs of three latencies and bandwidths, and is compared with
PyTorch, bit by bit, and with the cycle model, instruction by instruction. The formula of SCALE-Sim 3.0.0 for a weight
stationary array, (2 R + C + M - 2) ceil(K / R) ceil(N / C) - 1 cycles, stands beside: it has no memory to wait for.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import write_json
from hbfp.golden.command.progress import Bars
from hbfp.golden.lower.command import lowered
from hbfp.golden.perf.accelerator.scale_sim import scale_sim
from hbfp.options import system_from_args
from hbfp.program import Product
from hbfp.system import Accelerator
from hbfp.values import whole, writing

from ..accelerator.device import BusError, Timing
from ..emit import EmitError, emit_accelerator
from ..simulate.verilator import BuildError
from .numbered import numbered_from_args, numbered_parser

EXAMPLES = """\
examples:
  python -m cosim gemms --rows 8 --block 1,8
  python -m cosim gemms --rows 16 --block 1,16 --most 512 --count 200
"""
MOST_RANGE = 1, 4096


def timings(accelerator: Accelerator) -> tuple[Timing, ...]:
    """The three DRAMs: near and as wide as a beat, far, and far and narrow."""
    beat = accelerator.beat
    return tuple(Timing(latency=latency, bandwidth=bandwidth)
                 for latency, bandwidth in ((8, beat), (100, beat), (32, beat // 4)))


def shape(number: int, most: int) -> tuple[int, ...]:
    """M, K and N of a number: about as often small as large."""
    rng = np.random.default_rng(number)
    return tuple(int(size) for size in np.exp(rng.uniform(0, np.log(most), 3)).round())


def make_parser() -> Parser:
    """The command line."""
    parser, group = numbered_parser("gemms", __doc__, EXAMPLES, "products", 20)
    group.add_argument(
        "--most", default="256", metavar="N", help="most rows, columns, terms; 1 to 4096 (default 256)")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    numbers, path = numbered_from_args(args)
    most = whole("most", args.most, *MOST_RANGE)
    shapes = [shape(number, most) for number in numbers]
    return partial(_work, system_from_args(args, Accelerator), shapes, path, args.quiet)


def _work(accelerator, shapes, path, quiet):
    """Build, run, compare, tell; the exit status."""
    from ..accelerator.network import run as run_network

    console, rows = Console(highlight=False), []
    bar = Bars(console, quiet)
    with bar.progress:
        bar("generate")
        manifest = emit_accelerator(accelerator)
        build, tell = bar("build the model"), bar("products")
        for number, (m, k, n) in enumerate(shapes):
            program = lowered(f"gemm-{m}x{k}x{n}", accelerator)
            for timing in timings(accelerator):
                found = run_network(manifest, program, timing=timing, progress=build)
                rows.append({"shape": [m, k, n], "latency": timing.latency, "bandwidth": timing.bandwidth,
                             "compared": found.total.compared, "mismatches": found.total.mismatches,
                             "cycles": found.result.cycles, "exact": found.model == found.result.times,
                             "scale_sim": scale_sim([Product(m, k, n)], accelerator.core.rows, accelerator.lanes)})
                rows[-1]["fewer"] = rows[-1]["cycles"] < rows[-1]["scale_sim"]
            tell(number + 1, len(shapes))
    failed = [row for row in rows if row["mismatches"] or not row["exact"] or not row["compared"]]
    console.print(_table(accelerator, rows))
    for row in failed:
        console.print(f"[red]FAILED[/red]: {row}", soft_wrap=True)
    console.print(f"{len(rows) - len(failed)} of {len(rows)} runs have PyTorch's bits and the model's cycles; "
                  f"{sum(row['compared'] for row in rows):,} numbers compared", markup=False, soft_wrap=True)
    if path is not None:
        with writing("json", path):
            write_json(path, {"accelerator": accelerator.name, "runs": rows, "failed": len(failed)})
    return 1 if failed else 0


def _table(accelerator, rows):
    """A line for each DRAM."""
    table = Table(title=f"Products on {accelerator.name}")
    for head in ("latency", "bytes a cycle", "runs", "cycles", "SCALE-Sim's formula", "fewer cycles than it"):
        table.add_column(head, justify="right")
    for timing in timings(accelerator):
        mine = [row for row in rows if (row["latency"], row["bandwidth"]) == (timing.latency, timing.bandwidth)]
        fewer = sum(row["cycles"] < row["scale_sim"] for row in mine)
        cycles, formula = (sum(row[key] for row in mine) for key in ("cycles", "scale_sim"))
        table.add_row(str(timing.latency), str(timing.bandwidth), str(len(mine)), f"{cycles:,}", f"{formula:,}",
                      str(fewer))
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT, BusError: 1})
