"""``python -m golden error``: its command line."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from hbfp.files import write_json
from hbfp.values import OptionError, choice, make_folder, refuse, whole, writable_folder, writing

from ..command import options


def add_error(commands: Any) -> None:
    """Add the subcommand."""
    error = commands.add_parser("error", help="signal to quantisation noise; pruning with quantisation")
    error.add_argument("--distribution", default="normal", help="normal, uniform or laplace, unit variance")
    error.add_argument("--elements", default="4000000", help="numbers that are drawn")
    error.add_argument("--prune", metavar="N:M", help="compare both orders of N:M pruning and quantisation")
    error.add_argument("--out", help="folder for error.json")
    options.add_options(error, options.FORMAT)


def prepare_error(args: argparse.Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    from .error import DISTRIBUTIONS
    elements = whole("elements", args.elements, 1000, 10 ** 9)
    choice("distribution", args.distribution, DISTRIBUTIONS)
    fmt = (options.design(args, ("mantissa",), "without --prune") if args.prune is None
           else options.design(args, options.FORMAT, "on pruning")).format
    folder = None if args.out is None else writable_folder("out", args.out)
    if args.prune is None:
        widths = sorted({4, 6, 8, fmt.mantissa})
        return partial(_write_error, folder, partial(_quantisation_error, args.distribution, elements, widths))
    if fmt.rounding == "stochastic":
        raise refuse("rounding", fmt.rounding, "must be rne or truncate with --prune")
    n, m = _pattern(args.prune)
    return partial(_write_error, folder, partial(_prune_error, args.distribution, elements, n, m, fmt))


def _write_error(folder, work):
    data = work(Console(highlight=False))
    if folder is not None:
        make_folder("out", folder)
        with writing("out", folder):
            write_json(folder / "error.json", data)


def _quantisation_error(distribution, elements, widths, console):
    from . import error
    data = error.qsnr_table(widths, distribution=distribution, elements=elements)
    table = Table("format", *(f"block {b}" for b in error.QSNR_BLOCKS), title=f"QSNR in dB, {distribution}")
    for width, row in data.items():
        known = error.QSNR_REFERENCE.get(width) if distribution == "normal" else None
        table.add_row(f"HBFP{width}", *(f"{v:.2f}" + (f" ({v - known[i]:+z.2f})" if known else "")
                                        for i, v in enumerate(row)))
    console.print(table)
    if distribution == "normal":
        console.print("in brackets: difference to the published measurements")
    return data


def _pattern(text):
    from ..sparsity import GROUP_RANGE
    n, _, m = text.partition(":")
    try:
        m = whole("prune", m, *GROUP_RANGE)
        return whole("prune", n, 0, m), m
    except OptionError:
        raise refuse("prune", text, f"must be N:M with N at most M, M {GROUP_RANGE[0]} to {GROUP_RANGE[1]}") from None


def _prune_error(distribution, elements, n, m, fmt, console):
    from . import error
    w = error.samples(distribution, (max(1, elements // 1024), 1024))
    first, second = (float(e.sum() / (w.astype(float) ** 2).sum()) for e in error.both_orders(w, n, m, fmt, axis=1))
    table = Table("order", "squared error / squared weights", title=f"{n}:{m} and HBFP{fmt.mantissa} {fmt.block}")
    table.add_row("sparsify, then quantise", f"{first:.6f}")
    table.add_row("quantise, then sparsify", f"{second:.6f}")
    console.print(table)
    return {"sparsify_then_quantise": first, "quantise_then_sparsify": second}
