"""``python -m golden silicon``: area times time of training with mixed mantissas."""

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hbfp import files
from hbfp.values import writable_file, writing


def add_silicon(commands: Any) -> None:
    """Add the parser of ``silicon``."""
    silicon = commands.add_parser("silicon", help="area times time of training in 4 bits, boosted to 6")
    silicon.add_argument("--json", metavar="FILE", help="also write the results there")


def prepare_silicon(args: Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    return partial(_silicon, None if args.json is None else writable_file("json", args.json))


def _silicon(path: Path | None) -> None:
    from .silicon import cases

    found = cases()
    own, *others = found[0].area_time
    table = Table("network", "ends", "epochs", "wide %", "area x time", *(f"{name} /" for name in others),
                  title=f"Area x time of {own}, NAND2 x cycles a multiply-accumulate, and of other cores over it")
    table.columns[0].no_wrap = True
    for each in found:
        over = (each.over(name)[own] for name in others)
        table.add_row(each.network, "6" if each.ends else "4", str(each.epochs), f"{100 * each.wide:.2f}",
                      f"{each.area_time[own]:.1f}", *(f"{ratio:.2f}" for ratio in over))
    console = Console(highlight=False)
    console.print(table)
    console.print("the others: " + ", ".join(f"{name} {found[0].area_time[name]:.1f}" for name in others),
                  soft_wrap=True)
    if path is not None:
        with writing("json", path):
            files.write_json(path, [{"network": each.network, "ends": each.ends, "epochs": each.epochs,
                                     "wide": each.wide, "area_time": each.area_time, "over": each.over()}
                                    for each in found])
