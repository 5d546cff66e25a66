"""Options of a design on the commands of the golden model: those that change numbers are taken, others are refused."""

import argparse
from collections.abc import Sequence

from hbfp import describe
from hbfp.command import Parser
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.options import OPTIONS, add_source_options, design_from_args
from hbfp.values import flag, refuse

#: Ranges of a training run.
SEED_RANGE, EPOCHS_RANGE, BATCH_RANGE = (0, 2 ** 31 - 1), (0, 100_000), (0, 100_000)
#: Options of the number format.
FORMAT = tuple(describe.declared(HBFPFormat))
#: Options of a design that are left out: training says ``--wide`` of master weights.
LEFT_OUT = ("wide",)
#: What training takes of a design.
TRAINING = (*FORMAT, "accumulate", "arithmetic")
#: What a sweep takes: it has widths, and FP32 as one of them, of its own.
SWEEP = (*(name for name in FORMAT if name != "mantissa"), "accumulate")


def add_options(parser: Parser, taken: Sequence[str]) -> None:
    """Add the options of a design; help shows those that are ``taken``, and :func:`design` refuses the others."""
    group = parser.add_argument_group("design", "Of a preset or a file, too, all that changes no number is left alone.")
    describe.add_arguments(group, Design, shown=taken, without=LEFT_OUT)
    add_source_options(group)


def design(args: argparse.Namespace, taken: Sequence[str], where: str) -> Design:
    """The design that parsed arguments give, in blocks of 16 unless they say otherwise: the networks are small.

    Parameters
    ----------
    args : Namespace
    taken : sequence of str
        Options that have an effect.
    where : str
        What else decides that, in words: ``for training``.

    Raises
    ------
    OptionError
        If an option is given that has no effect, or a value is not valid; one line.
    """
    args = argparse.Namespace(**vars(args) | dict.fromkeys(LEFT_OUT))
    for name in OPTIONS:
        if getattr(args, name) is not None and name not in taken:
            raise refuse(name, getattr(args, name), f"has no effect {where}; options of a design that have one: "
                         f"{', '.join(map(flag, taken))}")
    if "block" in taken and args.block is None and args.preset is None and args.config is None:
        args = argparse.Namespace(**vars(args) | {"block": "1,16"})
    return design_from_args(args)
