"""``python -m cosim matrix``: the regression over widths, blocks, arrays, accumulations and roundings."""

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial

from hbfp.command import BAD_INPUT, Parser, run
from hbfp.values import JOBS_RANGE, several, whole, words_of

from ..simulate.verilator import BuildError
from ..work import regression


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m cosim matrix", description=regression.__doc__.split("\n\n", 1)[1])
    parser.add_argument("--arrays", metavar="RxC,...", help=f"only these, of {','.join(regression.NAMES)}")
    parser.add_argument("--selection", action="store_true",
                        help=f"only the {len(regression.SELECTION)} cells of the tests")
    parser.add_argument("--jobs", metavar="N", default=str(os.cpu_count()), help="builds at a time (all cores)")
    parser.add_argument("--keep", action="store_true", help="keep built models, some 2 GB")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    chosen = list(regression.SELECTION) if args.selection else regression.cells() + regression.sparse_cells()
    if args.arrays is not None:
        words_of("arrays", args.arrays)
        arrays = {regression.NAMES[word] for word in several("arrays", args.arrays, regression.NAMES)}
        chosen = [cell for cell in chosen if cell[2] in arrays]
    return partial(work, chosen, whole("jobs", args.jobs, *JOBS_RANGE), args.keep)


def work(chosen: Sequence[regression.Cell], jobs: int, keep: bool) -> int:
    """Check the cells in sight of the user; the exit status."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TimeRemainingColumn())
    console = Console(highlight=False)
    with Progress(*columns, console=console) as bars:
        task = bars.add_task("builds", total=None)
        # Cells of other roundings rest on the core of their nearest-even twin too.
        twins = dict.fromkeys([*((*cell[:-1], "rne") for cell in chosen), *chosen])
        results = regression.run_cells(list(twins), jobs=jobs, keep=keep, progress=lambda done, total, failed:
                             bars.update(task, completed=done, total=total, description=f"builds, {failed} failed"))
    bad = [cell for cell in chosen if not all(results[key]["passed"] for key in regression.needs(cell))]
    for key, entry in results.items():
        if not entry["passed"]:
            console.print(f"{key}: {'; '.join(entry['first'])}", markup=False)
    compared = sum(entry["compared"] for entry in results.values())
    console.print(f"{len(chosen) - len(bad)} of {len(chosen)} cells agree bit for bit; {compared:,} outputs compared "
                  f"in {len(results)} builds; {regression.results_file()}", markup=False, soft_wrap=True)
    return 1 if bad or not compared else 0


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {BuildError: BAD_INPUT})
