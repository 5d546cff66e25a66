"""``python -m cosim programs``: random legal programs on the Verilated accelerator, against the golden machine.

The program of a number follows from the options and the number alone. It ends by bringing every word of V, W and X to
DRAM; each has a DRAM of its own latency, bandwidth and pauses, and where that has none, the cycles must be those of the
cycle model. With --contexts 2 a number stands for two programs that take turns, with random shares of the memories.
With --draw N there are N accelerators, drawn from all that options allow, and each runs the programs.

With --networks a number stands for a small network in evaluation and its inputs, of layers and of operations as
functions. With --train it stands for a small training: a network, or two, a loss, an optimiser and batches. Every
tensor that a layer of either gives is compared with PyTorch, and cycles with the cycle model. What the accelerator is
too small for is drawn anew, and counted. --machine runs the golden machine in place of the Verilog.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from rich.console import Console

from hbfp import describe
from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import write_json
from hbfp.golden.command.progress import Bars
from hbfp.options import system_from_args, values_from_args
from hbfp.system import Accelerator
from hbfp.values import OptionError, flag, refuse, whole, writing

from ..accelerator.device import BusError
from ..accelerator.pair import PART
from ..emit import EmitError
from ..simulate.verilator import BuildError
from ..work.random_accelerators import draw
from ..work.random_trainers import draw_trainer
from .numbered import build_and_run, numbered_from_args, numbered_parser
from .untimed import add_machine

#: Accelerators that may be drawn.
DRAW_RANGE = (1, 1000)
#: Steps of a training.
STEPS, STEPS_RANGE = 2, (1, 1000)

EXAMPLES = """\
examples:
  python -m cosim programs --rows 8 --x-words 64 --w-words 64 --v-words 64 --p-words 64 --row-words 3 --depth 32
  python -m cosim programs --rows 8 --mantissa 4 --accumulate aligned --count 2000 --seed 1
  python -m cosim programs --draw 10 --count 20
  python -m cosim programs --rows 8 --x-words 256 --w-words 256 --v-words 256 --p-words 128 --contexts 2
  python -m cosim programs --networks --machine --draw 20 --count 25
  python -m cosim programs --train --machine --rows 8 --block 1,8 --x-words 256 --w-words 512 --v-words 256 --count 20
"""


def make_parser() -> Parser:
    """The command line."""
    parser, group = numbered_parser("programs", __doc__, EXAMPLES, "programs", 100)
    group.add_argument("--draw", metavar="N", help="accelerators of 8 x 8 drawn at random over all options, by the "
                       "number of the first program, 1 to 1000; in place of the options of one")
    group.add_argument("--train", action="store_true", help="small trainings in place of programs")
    group.add_argument("--networks", action="store_true", help="small networks in place of programs")
    group.add_argument("--steps", metavar="N", help=f"of each training (default {STEPS})")
    add_machine(group)
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    seeds, path = numbered_from_args(args)
    if args.train and args.networks:
        raise OptionError("--networks must not be given with --train")
    if args.steps and not args.train:
        raise OptionError("--steps must not be given without --train")
    if args.machine and not (args.train or args.networks):
        raise OptionError("--machine must not be given without --train or --networks")
    steps = STEPS if args.steps is None else whole("steps", args.steps, *STEPS_RANGE)
    what: _Programs | _OfPyTorch = _Programs()
    if args.train or args.networks:
        what = _OfPyTorch("training", args.machine, steps=steps) if args.train else _OfPyTorch("network", args.machine)
    if args.draw is not None:
        count = whole("draw", args.draw, *DRAW_RANGE)
        if given := values_from_args(args, tuple(describe.declared(Accelerator))):
            raise refuse("draw", args.draw, f"draws all options of an accelerator; leave out {flag(next(iter(given)))}")
        drawn = [what.draw(seeds[0], number) for number in range(count)]
        return partial(_work, what, drawn, seeds, path, args.quiet)
    accelerator = system_from_args(args, Accelerator)
    what.check(accelerator, args)
    return partial(_work, what, [accelerator], seeds, path, args.quiet)


class _Programs:
    """Random programs."""
    noun, draw = "program", staticmethod(draw)

    def check(self, accelerator, args):
        """OptionError if an accelerator cannot have them."""
        if accelerator.contexts > 1:
            try:
                accelerator.share(PART)
            except ValueError as error:
                raise refuse("contexts", args.contexts, f"needs {PART} sixteenths of each memory for a program. {error}"
                             ) from None

    def found(self, console, accelerator, seeds, quiet):
        """What came of them; lines that tell, and what the file has."""
        from ..accelerator.programs import run as run_programs

        found = build_and_run(console, accelerator, seeds, quiet, "programs", run_programs)
        line = (f"{found.programs - len(found.failures)} of {found.programs} programs equal the golden machine; "
                f"{found.words:,} words compared")
        return found, [line], {"programs": found.programs, "words": found.words}


class _OfPyTorch:
    """Random networks or trainings, ``noun`` says which, that are compared with PyTorch, and what runs them takes."""
    def __init__(self, noun, machine, **options):
        self.noun, self.machine, self.options = noun, machine, options
        self.draw = partial(draw_trainer, trains=noun == "training")

    def check(self, accelerator, args):
        """Any accelerator may have them."""

    def found(self, console, accelerator, seeds, quiet):
        """What came of them; lines that tell, and what the file has."""
        what = f"{self.noun}s"
        work = partial(import_module(f"..accelerator.{what}", __package__).run, **self.options)
        if self.machine:
            bar = Bars(console, quiet)
            with bar.progress:
                found = work(None, accelerator, seeds, tell=bar(what))
        else:
            found = build_and_run(console, accelerator, seeds, quiet, what, work)
        count = found.count
        lines = [f"{count - len(found.failures)} of {count} {what} equal PyTorch; {found.numbers:,} numbers compared"]
        if found.anew:
            lines.append("drawn anew, for limits of the accelerator: " + ", ".join(
                f"{limit} {count}" for limit, count in found.anew.most_common()))
        if found.none:
            lines.append(f"{len(found.none)} numbers have no {self.noun} that fits, the first {found.none[0]}")
        return found, lines, {what: count, "numbers": found.numbers, "anew": dict(found.anew), "none": found.none}


def _work(what, accelerators, seeds, path, quiet):
    """Build, run, compare, tell; the exit status."""
    console = Console(highlight=False)
    results = []
    for accelerator in accelerators:
        if len(accelerators) > 1:
            console.print(" ".join(accelerator.words()), markup=False, soft_wrap=True)
        found, lines, told = what.found(console, accelerator, seeds, quiet)
        for seed, line in found.failures.items():
            console.print(f"{what.noun} {seed}: {line}", markup=False, soft_wrap=True)
        for line in lines:
            console.print(line, markup=False, soft_wrap=True)
        results.append({"accelerator": accelerator.name, **told,
                        "failures": {str(seed): line for seed, line in found.failures.items()}})
    if path is not None:
        with writing("json", path):
            write_json(path, results[0] if len(results) == 1 else {"accelerators": results})
    return 1 if any(each["failures"] for each in results) else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT, BusError: 1})
