"""``python -m golden layers``: its command line."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from hbfp.files import output, write
from hbfp.values import OptionError, make_folder, readable_file, refuse, whole, words_of, writable_folder, writing

from ..command import options


def add_layers(commands: Any) -> None:
    """Add the subcommand."""
    layers = commands.add_parser("layers", help="errors of a model's operands, layer by layer")
    layers.add_argument("--model", default="digits", help="digits, or a Python file like golden/study/zoo/digits.py")
    layers.add_argument("--params", default="", help="what its trial suggests: hidden=64,rate=0.1; others are drawn")
    layers.add_argument("--checkpoint", help="file of its state_dict; without it the weights are those of model()")
    layers.add_argument("--seed", default="0", help="of what is drawn")
    layers.add_argument("--out", default=str(output("golden", "layers")), help="folder of layers.json and layers.png")
    options.add_options(layers, options.FORMAT)


def prepare_layers(args: argparse.Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    params = dict(_assigned(word) for word in words_of("params", args.params)) if args.params else {}
    checkpoint = None if args.checkpoint is None else Path(readable_file("checkpoint", args.checkpoint))
    seed = whole("seed", args.seed, *options.SEED_RANGE)
    fmt = options.design(args, options.FORMAT, "on errors of layers").format
    if fmt.rounding == "stochastic":
        raise refuse("rounding", fmt.rounding, "must be rne or truncate: models run in evaluation mode")
    folder = writable_folder("out", args.out)
    from . import layers
    return partial(_layers, layers, args.model, fmt, folder, params=params, checkpoint=checkpoint, seed=seed)


def _assigned(word):
    """Name and value of ``name=value``: a whole number, a number or text."""
    name, equals, text = word.partition("=")
    if not name or not equals or not text:
        raise refuse("params", word, "must be name=value")
    for kind in (int, float):
        try:
            return name, kind(text)
        except ValueError:
            continue
    return name, text


def _layers(layers, name, fmt, folder, **given):
    console = Console(highlight=False)
    try:
        found = layers.examine(name, fmt, **given)
        console.print(str(found), soft_wrap=True, markup=False)
        make_folder("out", folder)
        with writing("out", folder):
            write(folder / "layers.json", found.json() + "\n")
            layers.picture(found, folder / "layers.png", f"{Path(name).name}, HBFP{fmt.mantissa} {fmt.block}")
    except layers.ModelError as error:
        raise OptionError(str(error)) from None
    console.print(f"figures {folder}/layers.json, picture {folder}/layers.png", soft_wrap=True)
