"""``python -m cosim operands``: what the ports of a core see of a workload, as a file."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from hbfp import extras, files, generator
from hbfp.command import BAD_INPUT, Parser, run
from hbfp.design import Design
from hbfp.options import add_design_options, design_from_args
from hbfp.values import make_folder, refuse, writable_file, writable_folder, writing

from ..emit import EmitError
from ..manifest import Manifest

EXAMPLES = """\
examples:
  python -m cosim operands --workload digits --out build/digits.npz
  python -m cosim operands --workload resnet20 --arithmetic fp32 --out build/resnet20.npz
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m cosim operands", epilog=EXAMPLES,
                    description="The payloads of a core's streams in a few products of a workload, as operands and as "
                    "right answers: arrays of a .npz file.")
    add_design_options(parser)
    parser.add_argument("--workload", metavar="NAME", default="gaussian", help="gaussian, digits, a name of the zoo of "
                        "python -m golden perf, or FILE.py (default: gaussian)")
    parser.add_argument("--out", metavar="FILE", help="the file (default: build/operands/DESIGN-WORKLOAD.npz)")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    design = design_from_args(args)
    check(args.workload)
    if args.out is None:
        path = writable_folder("out", files.output("operands")) / f"{design.name}-{Path(args.workload).stem}.npz"
    else:
        path = writable_file("out", args.out)
    return partial(work, design, args.workload, path)


def check(workload: str) -> None:
    """Raise OptionError if there is no such workload."""
    from hbfp.golden.lower.names import PRODUCT, ZOO

    from ..work.operands import NAMES

    if workload in NAMES:
        return
    known = workload in ZOO or workload.startswith("gemm-") or workload.endswith(".py")
    if not known or workload.endswith(".py") and not Path(workload).is_file():
        raise refuse("workload", workload, f"must be {', '.join([*NAMES, *ZOO])}, {PRODUCT} or a Python file")
    if line := extras.lacking("torch"):
        raise refuse("workload", workload, f"needs PyTorch: {line}")


def work(design: Design, workload: str, path: Path) -> None:
    """Record, write, say so."""
    from ..work.operands import record

    try:
        folder = generator.emitted(design.name, [*generator.words(design), *generator.MEASURED])
    except generator.GeneratorError as error:
        raise EmitError(str(error)) from None
    try:
        found = record(Manifest.load(folder), workload)
    except ValueError as error:
        raise refuse("workload", workload, f"cannot be recorded: {error}") from None
    make_folder("out", path.parent)
    with writing("out", path), files.replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **found)
    beats, macs = found["commands"].sum(0)
    print(f"{path}: {len(found['commands'])} commands, {beats:,} rows of X, {macs:,} multiply-accumulates")


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT})
