"""``python -m cosim words``: random words as instructions on the Verilated accelerator.

The word of a number follows from the options and the number alone. An illegal one must stop the program with its cause
and its number, and nothing may be written; what a legal one does is compared with the golden machine, every word of
every memory. After each the next program must run right.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from rich.console import Console

from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import write_json
from hbfp.options import system_from_args
from hbfp.system import Accelerator
from hbfp.values import writing

from ..accelerator.device import BusError
from ..emit import EmitError
from ..simulate.verilator import BuildError
from .numbered import build_and_run, numbered_from_args, numbered_parser

EXAMPLES = """\
examples:
  python -m cosim words --rows 8 --block 1,8 --x-words 64 --w-words 64 --v-words 64 --p-words 64 --depth 32
"""


def make_parser() -> Parser:
    """The command line."""
    return numbered_parser("words", __doc__, EXAMPLES, "words", 1000)[0]


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    numbers, path = numbered_from_args(args)
    return partial(_work, system_from_args(args, Accelerator), numbers, path, args.quiet)


def _work(accelerator, numbers, path, quiet):
    """Build, run, compare, tell; the exit status."""
    from ..accelerator.words import run as run_words

    console = Console(highlight=False)
    found = build_and_run(console, accelerator, numbers, quiet, "words", run_words)
    for number, line in found.failures.items():
        console.print(f"word {number}: {line}", markup=False, soft_wrap=True)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(found.kinds.items()))
    good = found.words - len(found.failures)
    console.print(f"{good} of {found.words} words do what is defined ({kinds})", markup=False, soft_wrap=True)
    if path is not None:
        with writing("json", path):
            write_json(path, {"accelerator": accelerator.name, "words": found.words, "kinds": found.kinds,
                              "failures": {str(number): line for number, line in found.failures.items()}})
    return 0 if good == found.words else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT, BusError: 1})
