"""``python -m cosim random``: random designs over all options, each judged by the benches.

The design of a number follows from the seed and the number alone. Results are kept as they come, under the Verilog
and the benches that gave them, so that a run goes on where the last one ended. With --broken every design has one
operator of its Verilog changed at random, and the right verdict is FAILED; a change of nothing that matters, such as
an operand that is always zero, may pass.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial

from hbfp import files
from hbfp.command import BAD_INPUT, Parser, run
from hbfp.values import JOBS_RANGE, whole, writable_file, writing

from ..simulate.verilator import BuildError
from ..work.random_run import results_file, run_random

COUNT_RANGE, SEED_RANGE = (1, 100_000), (0, 2**32 - 1)


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m cosim random", description=__doc__.split("\n\n", 1)[1])
    parser.add_argument("--count", metavar="N", default="100", help="designs, 1 to 100000 (default 100)")
    parser.add_argument("--seed", metavar="N", default="1", help="of designs, data and pauses (default 1)")
    parser.add_argument("--broken", action="store_true", help="change one operator in each: the benches must fail it")
    parser.add_argument("--jobs", metavar="N", default=str(os.cpu_count()), help="designs at a time (all cores)")
    parser.add_argument("--keep", action="store_true", help="keep what was built for designs that passed")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    args.count, args.seed = whole("count", args.count, *COUNT_RANGE), whole("seed", args.seed, *SEED_RANGE)
    args.jobs = whole("jobs", args.jobs, *JOBS_RANGE)
    if args.json is not None:
        args.json = writable_file("json", args.json)
    return partial(work, args)


def work(args: argparse.Namespace) -> int:
    """Judge the designs in sight of the user; the exit status: 0 if every verdict is the right one."""
    from rich.console import Console

    console = Console(highlight=False)

    def tell(done, total, entry):
        console.print(f"{done} of {total}: {entry['name']}: {entry['verdict']}", markup=False, soft_wrap=True)

    results = run_random(args.count, args.seed, broken=args.broken, jobs=args.jobs, keep=args.keep, progress=tell)
    right = "FAILED" if args.broken else "passed"
    good = sum(entry["verdict"] == right for entry in results.values())
    _table(console, results)
    for key, entry in results.items():
        if entry["verdict"] != right:
            fault = entry.get("fault")
            told = [f"line {fault['line']}, {fault['before']} -> {fault['after']}"] if fault else entry["problems"]
            console.print(f"{key}, {entry['name']}: {'; '.join(told)}", markup=False, soft_wrap=True)
    if args.json:
        data = {"seed": args.seed, "broken": args.broken, "count": args.count, "right": good, "results": results}
        with writing("json", args.json):
            files.write_json(args.json, data)
    compared = sum(entry["compared"] for entry in results.values())
    console.print(f"{good} of {args.count} designs {right}; {compared:,} outputs compared; {results_file()}",
                  markup=False, soft_wrap=True)
    return 0 if good == args.count else 1


def _table(console, results):
    from rich.table import Table

    table = Table(title="Random designs")
    for name, justify in (("", "right"), ("design", "left"), ("outputs compared", "right"), ("differ", "right"),
                          ("corners seen", "right"), ("verdict", "left")):
        table.add_column(name, justify=justify, overflow="fold")
    for key, entry in results.items():
        table.add_row(key.split()[-1], entry["name"], f"{entry['compared']:,}", f"{entry['mismatches']:,}",
                      f"{entry['seen']} of {entry['asked']}", entry["verdict"])
    console.print(table)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {BuildError: BAD_INPUT})
