"""Options of commands that do one thing many times, each time as a number says."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from hbfp.command import Parser
from hbfp.golden.command.progress import Bars
from hbfp.options import add_system_options
from hbfp.system import Accelerator
from hbfp.values import whole, writable_file

from ..emit import emit_accelerator

#: What work finds.
Found = TypeVar("Found")
COUNT_RANGE, SEED_RANGE = (1, 100_000), (0, 2**31 - 1)


def numbered_parser(command: str, page: str, examples: str, what: str, count: int
                    ) -> tuple[Parser, argparse._ArgumentGroup]:
    """The command line of a command that runs on an accelerator, and its group of options for what it does many times.

    ``page`` is the docstring of the command's module, whose first paragraph is not in the help; ``what`` a noun in the
    plural, of which ``count`` are done by default.
    """
    parser = Parser(prog=f"python -m cosim {command}", description=page.split("\n\n", 1)[1], epilog=examples)
    add_system_options(parser, Accelerator, "accelerator")
    group = parser.add_argument_group(what)
    group.add_argument("--count", default=str(count), metavar="N", help=f"{what}, 1 to 100000 (default {count})")
    group.add_argument("--seed", default="0", metavar="N", help="number of the first (default 0)")
    group.add_argument("--json", metavar="FILE", help="also write the results there")
    group.add_argument("--quiet", action="store_true", help="no progress bars")
    return parser, group


def numbered_from_args(args: argparse.Namespace) -> tuple[range, Path | None]:
    """The numbers as a range, and the file for the results or None; OptionError if a value is not valid."""
    count, seed = whole("count", args.count, *COUNT_RANGE), whole("seed", args.seed, *SEED_RANGE)
    return range(seed, seed + count), None if args.json is None else writable_file("json", args.json)


def build_and_run(console: Console, accelerator: Accelerator, numbers: range, quiet: bool, what: str,
                  work: Callable[..., Found]) -> Found:
    """Emit and build an accelerator and run ``work`` on it, in sight of the user; what ``work`` found."""
    bar = Bars(console, quiet)
    with bar.progress:
        bar("generate")
        manifest = emit_accelerator(accelerator)
        build = bar("build the model")
        return work(manifest, accelerator, numbers, progress=build, tell=bar(what))
