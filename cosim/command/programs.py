"""``python -m cosim programs``: random legal programs on the Verilated accelerator, against the golden machine.

The program of a number follows from the options and the number alone. It ends by bringing every word of V, W and X to
DRAM; each has a DRAM of its own latency, bandwidth and pauses.
"""

from functools import partial

from rich.console import Console

from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import write_json
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import whole, writable_file, writing

from ..accelerator.device import BusError
from ..emit import EmitError, emit_accelerator
from ..simulate.verilator import BuildError
from .core import Bars

EXAMPLES = """\
examples:
  python -m cosim programs --rows 8 --x-words 64 --w-words 64 --v-words 64 --p-words 64 --row-words 3 --depth 32
  python -m cosim programs --rows 8 --mantissa 4 --accumulate aligned --count 2000 --seed 1
"""
COUNT_RANGE, SEED_RANGE = (1, 100_000), (0, 2**31 - 1)


def make_parser():
    """The command line."""
    parser = Parser(prog="python -m cosim programs", description=__doc__.split("\n\n", 1)[1], epilog=EXAMPLES)
    add_system_options(parser, Accelerator, "accelerator")
    group = parser.add_argument_group("programs")
    group.add_argument("--count", default="100", metavar="N", help="programs, 1 to 100000 (default 100)")
    group.add_argument("--seed", default="0", metavar="N", help="number of the first (default 0)")
    group.add_argument("--json", metavar="FILE", help="also write the results there")
    group.add_argument("--quiet", action="store_true", help="no progress bars")
    return parser


def prepare(args):
    """From parsed arguments to the work; OptionError if a value is not valid."""
    count, seed = whole("count", args.count, *COUNT_RANGE), whole("seed", args.seed, *SEED_RANGE)
    path = None if args.json is None else writable_file("json", args.json)
    return partial(_work, system_from_args(args, Accelerator), range(seed, seed + count), path, args.quiet)


def _work(accelerator, seeds, path, quiet):
    """Build, run, compare, tell; the exit status."""
    from ..accelerator.programs import run as run_programs

    console = Console(highlight=False)
    bar = Bars(console, quiet)
    with bar.progress:
        bar("generate")
        manifest = emit_accelerator(accelerator)
        build = bar("build the model")
        found = run_programs(manifest, accelerator, seeds, progress=build, tell=bar("programs"))
    for seed, line in found.failures.items():
        console.print(f"program {seed}: {line}", markup=False, soft_wrap=True)
    good = found.programs - len(found.failures)
    console.print(f"{good} of {found.programs} programs equal the golden machine; {found.words:,} words compared",
                  markup=False, soft_wrap=True)
    if path is not None:
        with writing("json", path):
            write_json(path, {"accelerator": accelerator.name, "programs": found.programs, "words": found.words,
                              "failures": {str(seed): line for seed, line in found.failures.items()}})
    return 0 if good == found.programs else 1


def main(argv=None):
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT, BusError: 1})
