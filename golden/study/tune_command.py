"""``python -m golden tune``: its command line."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from hbfp.files import output
from hbfp.format import BLOCK_LIMIT, MANTISSA_RANGE, ROUNDINGS
from hbfp.values import OptionError, choice, refuse, several, whole, words_of, writable_folder, writing

#: The names of golden.study.tune.SEARCHES, which needs Optuna.
SEARCHES = ("random", "halving", "hyperband")
#: Options of HBFP formats, with their defaults.
OWN = {"mantissa": "8", "block": "16", "rounding": "rne"}


def add_tune(commands: Any) -> None:
    """Add the subcommand."""
    tune = commands.add_parser("tune", help="search for hyper-parameters and formats; goes on where it was killed")
    tune.add_argument("--model", default="digits", metavar="NAME",
                      help="digits, or a Python file like golden/study/zoo/digits.py")
    tune.add_argument("--trials", default="32", metavar="N", help="how many, 1 to 1000000")
    tune.add_argument("--epochs", default="9", metavar="N", help="epochs of a trial that is not ended early")
    tune.add_argument("--together", default="16", metavar="N", help="trials of a round, which share jobs")
    tune.add_argument("--search", default="hyperband", metavar="NAME",
                      help=f"what ends trials early: {', '.join(SEARCHES)}")
    tune.add_argument("--mantissa", default=OWN["mantissa"], metavar="LIST",
                      help="widths to choose from, 0 for FP32: 0,4,6,8")
    tune.add_argument("--block", default=OWN["block"], metavar="LIST", help="block lengths to choose from")
    tune.add_argument("--rounding", default=OWN["rounding"], metavar="LIST",
                      help=f"to choose from: {', '.join(ROUNDINGS)}")
    tune.add_argument("--formats", metavar="LIST",
                      help="names of formats to choose from in place of these, of any kind: fp32,hbfp6,mxfp6 "
                           "(docs/formats.md)")
    tune.add_argument("--seed", default="0", metavar="N", help="of proposals and training")
    tune.add_argument("--memory", default="0", metavar="N", help="MiB for a job; 0: half of the machine's")
    tune.add_argument("--out", default=str(output("golden", "tune")), metavar="DIR",
                      help="folder of the search's state and table")


def prepare_tune(args: argparse.Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    mantissas = tuple(whole("mantissa", word, 0, MANTISSA_RANGE[1]) for word in words_of("mantissa", args.mantissa))
    if 0 < min((width for width in mantissas if width), default=MANTISSA_RANGE[0]) < MANTISSA_RANGE[0]:
        raise refuse("mantissa", args.mantissa, f"must be 0 or {MANTISSA_RANGE[0]} to {MANTISSA_RANGE[1]}")
    formats = () if args.formats is None else _formats(args)
    options = dict(
        model=args.model, trials=whole("trials", args.trials, 1, 1_000_000),
        epochs=whole("epochs", args.epochs, 1, 100_000), together=whole("together", args.together, 1, 1024),
        search=choice("search", args.search, SEARCHES), mantissas=mantissas,
        blocks=tuple(whole("block", word, 1, BLOCK_LIMIT) for word in words_of("block", args.block)),
        roundings=tuple(several("rounding", ",".join(words_of("rounding", args.rounding)), ROUNDINGS)),
        formats=formats, seed=whole("seed", args.seed, 0, 2 ** 31 - 1))
    memory = whole("memory", args.memory, 0, 1 << 30) << 20
    folder = writable_folder("out", args.out)
    from .tune import tune
    from .tune_model import ModelError, Search
    return partial(_tune, tune, Search(**options), folder, memory, ModelError)


def _formats(args):
    """Names of formats, of which each is one, and which stand alone."""
    for name, default in OWN.items():
        if getattr(args, name) != default:
            raise refuse(name, getattr(args, name), "has no effect with --formats")
    found = tuple(words_of("formats", args.formats))
    from ..nn import Formats
    for name in found:
        if name != "fp32":
            try:
                Formats.of(name)
            except ValueError as error:
                raise refuse("formats", args.formats, str(error)) from None
    return found


def _tune(tune, search, folder, memory, failure):
    console = Console(highlight=False)
    try:
        rows = tune(search, folder, memory=memory or None,
                    report=lambda line: console.print(line, soft_wrap=True))
    except failure as error:
        raise OptionError(str(error)) from None
    names = list(dict.fromkeys(name for row in rows for name in row["params"]))
    table = Table("trial", "accuracy %", "epochs", *names, title=f"The ten best of {len(rows)} trials")
    for row in rows[:10]:
        table.add_row(str(row["number"]), f"{row['value']:.2f}", str(row["epochs"]),
                      *(_shown(row["params"].get(name, "")) for name in names))
    console.print(table)
    best = rows[0]
    console.print(f"best: trial {best['number']} with {best['value']:.2f} % after {best['epochs']} epochs: "
                  f"{', '.join(f'{name} {_shown(value)}' for name, value in best['params'].items())}", soft_wrap=True)
    from .tune_picture import draw  # with matplotlib
    with writing("out", folder):
        draw(rows, folder / "tune.png")
    console.print(f"all trials {folder}/search.json, picture {folder}/tune.png, Optuna's storage "
                  f"{folder}/study.journal", soft_wrap=True)


def _shown(value):
    """A parameter as tables have it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
