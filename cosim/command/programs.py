"""``python -m cosim programs``: random legal programs on the Verilated accelerator, against the golden machine.

The program of a number follows from the options and the number alone. It ends by bringing every word of V, W and X to
DRAM; each has a DRAM of its own latency, bandwidth and pauses, and where that has none, the cycles must be those of the
cycle model. With --contexts 2 a number stands for two programs that take turns, with random shares of the memories.
With --draw N there are N accelerators, drawn from all that options allow, and each runs the programs.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from rich.console import Console

from hbfp import describe
from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import write_json
from hbfp.options import system_from_args, values_from_args
from hbfp.system import Accelerator
from hbfp.values import flag, refuse, whole, writing

from ..accelerator.device import BusError
from ..accelerator.pair import PART
from ..emit import EmitError
from ..simulate.verilator import BuildError
from ..work.random_accelerators import draw
from .numbered import build_and_run, numbered_from_args, numbered_parser

#: Accelerators that may be drawn.
DRAW_RANGE = (1, 1000)

EXAMPLES = """\
examples:
  python -m cosim programs --rows 8 --x-words 64 --w-words 64 --v-words 64 --p-words 64 --row-words 3 --depth 32
  python -m cosim programs --rows 8 --mantissa 4 --accumulate aligned --count 2000 --seed 1
  python -m cosim programs --draw 10 --count 20
  python -m cosim programs --rows 8 --x-words 256 --w-words 256 --v-words 256 --p-words 128 --contexts 2
"""


def make_parser() -> Parser:
    """The command line."""
    parser, group = numbered_parser("programs", __doc__, EXAMPLES, "programs", 100)
    group.add_argument("--draw", metavar="N", help="accelerators of 8 x 8 drawn at random over all options, by the "
                       "number of the first program, 1 to 1000; in place of the options of one")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    seeds, path = numbered_from_args(args)
    if args.draw is not None:
        count = whole("draw", args.draw, *DRAW_RANGE)
        if given := values_from_args(args, tuple(describe.declared(Accelerator))):
            raise refuse("draw", args.draw, f"draws all options of an accelerator; leave out {flag(next(iter(given)))}")
        return partial(_work, [draw(seeds[0], number) for number in range(count)], seeds, path, args.quiet)
    accelerator = system_from_args(args, Accelerator)
    if accelerator.contexts > 1:
        try:
            accelerator.share(PART)
        except ValueError as error:
            raise refuse("contexts", args.contexts, f"needs {PART} sixteenths of each memory for a program. {error}"
                         ) from None
    return partial(_work, [accelerator], seeds, path, args.quiet)


def _work(accelerators, seeds, path, quiet):
    """Build, run, compare, tell; the exit status."""
    from ..accelerator.programs import run as run_programs

    console = Console(highlight=False)
    results = []
    for accelerator in accelerators:
        if len(accelerators) > 1:
            console.print(" ".join(accelerator.words()), markup=False, soft_wrap=True)
        found = build_and_run(console, accelerator, seeds, quiet, "programs", run_programs)
        for seed, line in found.failures.items():
            console.print(f"program {seed}: {line}", markup=False, soft_wrap=True)
        console.print(f"{found.programs - len(found.failures)} of {found.programs} programs equal the golden machine; "
                      f"{found.words:,} words compared", markup=False, soft_wrap=True)
        results.append({"accelerator": accelerator.name, "programs": found.programs, "words": found.words,
                        "failures": {str(seed): line for seed, line in found.failures.items()}})
    if path is not None:
        with writing("json", path):
            write_json(path, results[0] if len(results) == 1 else {"accelerators": results})
    return 1 if any(each["failures"] for each in results) else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT, BusError: 1})
