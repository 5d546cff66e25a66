"""Options that the commands of ``python -m synth`` share, and what they do with them."""

import argparse
import os
import re
import sys
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hbfp.design import Design
from hbfp.options import design_from_values, values_from_args
from hbfp.values import JOBS_RANGE, choice, number, refuse, several, whole, words_of

from ..compare.baselines import BASELINES
from ..measure.memories import BIT_RANGE
from ..tools import adders, library, recipes
from ..tools.library import Library

#: fF of wire for each sink of a net.
WIRE_RANGE = (0, 100)
RECIPES = recipes.CELL_RECIPES + recipes.GENERIC_RECIPES


class Move(Protocol):
    """Moves a bar."""

    def __call__(self, done: int, total: int, name: str | None = None) -> None:
        """``done`` of ``total``, and what is under way."""


def make_console() -> Console:
    """Where tables go: as wide as the terminal or as ``COLUMNS`` says, or 120 columns."""
    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=120)


def progress_bar(console: Console) -> Progress:
    """A bar that goes when the work is done."""
    return Progress(TextColumn("{task.description:45.45}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                    console=console, transient=True)


def mover(bar: Progress, title: str, before: str = "") -> Move:
    """A callable ``progress(done, total, name)`` that moves a bar, and shows the name behind ``before``."""
    task = bar.add_task(title)

    def move(done: int, total: int, name: str | None = None) -> None:
        bar.update(task, completed=done, total=total, description=title if name is None else before + name)
    return move


def add_flow_options(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """Add the cell library, the recipe and the number of processes, which :func:`choose_target` and :func:`jobs`
    read; with ``several`` lists of the first two, which :func:`choose_targets` reads.
    """
    which = "cell libraries, commas between; all: those in build/lib" if several else "cell library"
    parser.add_argument("--liberty", metavar="FILES" if several else "FILE", help=f"{which} (default: OSU018 if "
                        "fetched, else generic gates)")
    parser.add_argument("--recipe", metavar="NAMES" if several else "NAME",
                        help=f"Yosys script: {', '.join(RECIPES)} (default: area)")
    parser.add_argument("--jobs", metavar="N", default=os.cpu_count(), help="processes (default: all cores)")


def jobs(args: argparse.Namespace) -> int:
    """The number of processes; OptionError if it is none."""
    return whole("jobs", args.jobs, *JOBS_RANGE)


def add_memory_option(parser: argparse.ArgumentParser) -> None:
    """Add the price of a bit of memory, which :func:`memory_bit` reads."""
    parser.add_argument("--memory-bit", metavar="N", help="NAND2-equivalents of a bit of memory, {} to {} "
                        "(default: as macros, by words and width)".format(*BIT_RANGE))


def memory_bit(args: argparse.Namespace) -> float | None:
    """NAND2-equivalents of a bit of memory, None for macros; OptionError if that is no number in range."""
    return None if args.memory_bit is None else number("memory-bit", args.memory_bit, *BIT_RANGE)


def check_unit(name: str) -> None:
    """Raise OptionError if this cannot be a unit's name; the generator knows which there are."""
    if not re.fullmatch("[a-z0-9_.]{1,40}", name):
        raise refuse("unit", name, "must be a unit of python -m gen")


def choose_target(recipe: str | None, liberty: str | os.PathLike[str] | None) -> tuple[str, Library | None]:
    """Recipe and library from option values; None takes what is there.

    Raises
    ------
    OptionError
        If one is not valid, or the recipe needs a library.
    """
    if recipe is not None:
        choice("recipe", recipe, RECIPES)
    cells = None if recipe in recipes.GENERIC_RECIPES else \
        library.load(liberty) if liberty is not None else library.default()
    recipe = recipe or ("area" if cells else "generic")
    if recipe in recipes.CELL_RECIPES and not cells:
        raise refuse("recipe", recipe, "needs a cell library: python -m synth fetch, or --liberty FILE")
    if recipe == "adders" and cells and not adders.full_adder(cells):
        raise refuse("recipe", recipe, f"needs a full adder, which {cells.name} does not have")
    return recipe, cells


def choose_targets(recipes_text: str | None, liberty: str | None) -> list[tuple[str, Library | None]]:
    """Every recipe with every library of two lists, the first recipe with all libraries first; OptionError as of
    :func:`choose_target`.
    """
    names = [None] if recipes_text is None else words_of("recipe", recipes_text)
    paths = [None] if liberty is None else words_of("liberty", liberty)
    if paths == ["all"]:
        paths = library.present()
        if not paths:
            raise refuse("liberty", "all", f"there is none in {library.OSU018.parent}: python -m synth fetch")
    return list(dict.fromkeys(choose_target(name, path) for name in names for path in paths))


def least_area(args: argparse.Namespace) -> Design:
    """The design, with recoded multipliers unless the user chose: the generator's default is quicker to simulate."""
    return design_from_values({"multiplier": "recoded"} | values_from_args(args))


def free_clock(design: Design, command: str) -> None:
    """Raise OptionError if a command, which moves every register at one edge, cannot take the design."""
    if design.gated:
        raise refuse("weight-clock", design.weight_clock, f"must be free for python -m synth {command}")


def baselines(text: str) -> list[str]:
    """The names of ``--against``; OptionError if one is none."""
    return several("against", text, BASELINES)
