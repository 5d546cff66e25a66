"""``python -m cosim dispatch``: the Verilog of the dispatcher against its twin: all policies, faults and resets."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from rich.console import Console
from rich.progress import track
from rich.table import Table

from hbfp import generator
from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import write_json
from hbfp.golden.spec.dispatch import DispatchUnit
from hbfp.values import whole, writable_file, writing

from ..bench.comparison import Comparison
from ..dispatch.check import SMALL, cases, compare, words
from ..manifest import Manifest
from ..simulate.player import Player
from ..simulate.verilator import BuildError

EXAMPLES = """\
examples:
  python -m cosim dispatch                          1000 requests under each of 5 loads and 6 policies, then faults
  python -m cosim dispatch --requests 100 --seed 7 --json dispatch.json
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m cosim dispatch", description=__doc__, epilog=EXAMPLES)
    parser.add_argument("--requests", default="1000", metavar="N", help="of each run, 1 to 100000 (default 1000)")
    parser.add_argument("--seed", default="1", metavar="N", help="of requests, paces and faults (default 1)")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    requests, seed = whole("requests", args.requests, 1, 100_000), whole("seed", args.seed, 0, 2**32 - 1)
    return partial(_check, requests, seed, None if args.json is None else writable_file("json", args.json))


def build(unit: DispatchUnit = SMALL) -> Player:
    """The Verilated dispatcher of a size."""
    return Player(Manifest.load(generator.emitted("dispatch", words(unit))))


def _check(requests, seed, json_file):
    """Run all cases; the exit status."""
    console = Console(highlight=False)
    chosen, rows, total = cases(requests, seed), [], Comparison()
    players = {unit: build(unit) for unit in {case.unit: None for case in chosen}}
    for case in track(chosen, "runs", console=console, transient=True):
        result, cycles, twin = compare(players[case.unit], case)
        total += result
        rows.append({"case": case.name, "cycles": cycles, "compared": result.compared, "mismatches": result.mismatches,
                     "completed": twin.tally.values[0]})
    table = Table(title="Dispatcher: Verilog against its twin, every port in every cycle")
    for name in ("runs", "cycles", "values compared", "mismatches", ""):
        table.add_column(name, justify="right")
    passed = not total.mismatches and total.compared > 0
    table.add_row(str(len(rows)), f"{sum(row['cycles'] for row in rows):,}", f"{total.compared:,}",
                  f"{total.mismatches:,}", "[green]passed" if passed else "[red]FAILED")
    console.print(table)
    for line in total.first[:5]:
        console.print(line, markup=False)
    if json_file is not None:
        with writing("json", json_file):
            write_json(json_file, {"seed": seed, "runs": rows, "compared": total.compared,
                                   "mismatches": total.mismatches, "passed": passed})
    return 0 if passed else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {BuildError: BAD_INPUT, generator.GeneratorError: BAD_INPUT})
