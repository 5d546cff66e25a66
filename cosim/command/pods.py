"""``python -m cosim pods``: machines of pods, bit by bit against golden values, and cycle by cycle."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from hbfp import describe, generator
from hbfp.command import BAD_INPUT, Parser, run
from hbfp.design import Design
from hbfp.files import replacing
from hbfp.golden.pods.machine import WHOLE
from hbfp.golden.pods.program import from_text
from hbfp.options import pods_from_values
from hbfp.pods import PodsDesign
from hbfp.program import ProgramError
from hbfp.values import OptionError, choice, read_file, refuse, whole, writable_file, writing

from ..simulate.verilator import BuildError

EXAMPLES = """\
examples:
  python -m cosim pods                              8 pods of 8 x 8: the digits network, a convolution, a transformer's
                                                    layer, several models as one job
  python -m cosim pods --pods 4 --workload digits --save digits.json
  python -m cosim pods --pods 8 --program digits.json      refused: the program is for another machine
"""
#: The machine of the benches, where nothing else is asked for.
USUAL = {"rows": 8, "pods": 8}
#: Bytes of a file with a program.
MOST = 1 << 28
#: Options of a design that a machine of pods has, too.
OPTIONS = ("mantissa", "exponent", "block", "rows", "group", "multiplier", "rounding")


def make_parser() -> Parser:
    """The command line."""
    from ..pods.bench import WORKLOADS

    parser = Parser(prog="python -m cosim pods", description=__doc__, epilog=EXAMPLES)
    machine = parser.add_argument_group("machine", "As for python -m gen --top pods; 8 pods of 8 x 8 by default.")
    describe.add_arguments(machine, PodsDesign, without=set(describe.declared(Design)) - set(OPTIONS))
    parser.add_argument("--workload", metavar="NAME", help=f"one of {', '.join(WORKLOADS)} (default: all)")
    parser.add_argument("--chain", metavar="N",
                        help="most tiles along K whose sums go on from one to the next, the chains being added in "
                             "ascending order (default: all, which is the order of one array)")
    parser.add_argument("--program", metavar="FILE", help="run a program that --save has written, instead")
    parser.add_argument("--save", metavar="FILE", help="write the first program of the workload there")
    parser.add_argument("--seed", default="1", metavar="N", help="of weights and data (default 1)")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    from ..pods.bench import WORKLOADS

    names = [each for each in describe.declared(PodsDesign) if hasattr(args, each)]
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    design = pods_from_values(USUAL | given)
    workloads = tuple(WORKLOADS) if args.workload is None else (choice("workload", args.workload, WORKLOADS),)
    program = None
    if args.program is not None:
        for name in ("workload", "chain", "save"):
            if getattr(args, name) is not None:
                raise refuse(name, getattr(args, name), "has no effect with --program")
        try:
            program = from_text(read_file("program", args.program, MOST).decode(errors="replace"))
            program.require(design.key)
        except ProgramError as error:
            raise OptionError(f"--program {args.program}: {error}") from None
    seed = whole("seed", args.seed, 0, 2**32 - 1)
    save, json = (None if each is None else writable_file(name, each)
                  for name, each in (("save", args.save), ("json", args.json)))
    chain = WHOLE if args.chain is None else whole("chain", args.chain, 1, WHOLE)
    return partial(_work, design, chain, workloads, seed, program, save, json)


def _work(design, chain, names, seed, program, save, json):
    """Run everything; the exit status."""
    from ..pods.bench import Bench
    from ..pods.report import show

    bench = Bench(design, chain)
    if program is not None:
        bench.checks["program"] = bench.now
        bench.run_program("program", program)
        return show(bench, json)
    try:
        for name in names:
            bench.work(name, seed)
    except ProgramError as error:
        raise OptionError(str(error)) from None
    if save is not None:
        with writing("save", save):
            with replacing(save) as file:
                file.write_text(bench.first.text())
    return show(bench, json)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {BuildError: BAD_INPUT, generator.GeneratorError: BAD_INPUT})
