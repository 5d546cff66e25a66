"""``python -m golden schedule``: its command line."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from hbfp.format import MANTISSA_RANGE
from hbfp.values import whole


def add_schedule(commands: Any) -> None:
    """Add the subcommand."""
    schedule = commands.add_parser("schedule", help="share of the arithmetic at each mantissa width")
    schedule.add_argument("--base", default="4", help="bits of most of the arithmetic")
    schedule.add_argument("--boost", default="6", help="bits of the last epoch, and of the first and the last layer")


def prepare_schedule(args: argparse.Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    base = whole("base", args.base, *MANTISSA_RANGE)
    return partial(_shares, base, whole("boost", args.boost, base, MANTISSA_RANGE[1]))


def _shares(base, boost):
    from ..schedule import MixedMantissa, linear_macs, resnet20_macs, resnet50_macs
    table = Table("network", "epochs", "last epoch alone, %", "and first and last layer, %",
                  title=f"Share of the arithmetic at {base} bits; the rest at {boost}")
    networks = [("ResNet-20, 32 x 32", resnet20_macs(), (90, 160, 330)),
                ("ResNet-50, 224 x 224", resnet50_macs(), (90, 160, 330)),
                ("task teacher, 16-128-128-10", linear_macs(16, 128, 128, 10), (25,))]
    for name, macs, lengths in networks:
        for epochs in lengths:
            shares = [MixedMantissa(base=base, boosted=boost, epochs=epochs, ends=ends).share(macs).get(base, 0)
                      for ends in (False, True)]
            table.add_row(name, str(epochs), *(f"{share * 100:.2f}" for share in shares))
    Console(highlight=False).print(table)
