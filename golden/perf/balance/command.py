"""``python -m golden balance``: the options of an accelerator that networks need, by area and cycles."""

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hbfp import files
from hbfp.extras import need
from hbfp.golden.command.progress import Bars
from hbfp.golden.lower.names import zoo_text
from hbfp.presets import SYSTEMS
from hbfp.values import OptionError, make_folder, shown, whole, writable_file, writable_folder, writing

#: Percent of cycles beyond the default's, unless said.
LIMIT = "5"


def add_balance(commands: Any) -> None:
    """Add the parser of ``balance``."""
    balance = commands.add_parser(
        "balance", help="the accelerator's options that networks need, by area and cycles",
        description="Searches the options of the accelerator of 32 x 32 for HBFP8: lanes, memories, banks, depths, bus "
        "and queue, by everything's area and the cycles of networks. What was found is kept, so that it soon is where "
        f"it was stopped.\n\n{zoo_text()}")
    balance.add_argument("networks", metavar="NETWORK", nargs="+", help="FILE.py with model() and inputs(), a name of "
                         "the zoo, above, or train:NAME, a step of a training as python -m golden perf --train has it")
    balance.add_argument("--limit", default=LIMIT, metavar="LIST", help="percent by which cycles may exceed the "
                         f"default accelerator's, one for all networks or one for each (default {LIMIT})")
    balance.add_argument("--trials", default="40", metavar="N", help="accelerators in all, 2 to 100000 (default 40)")
    balance.add_argument("--jobs", default="2", metavar="N", help="processes, 1 to 256 (default 2)")
    balance.add_argument("--seed", default="0", metavar="N", help="of the order of what is tried (default 0)")
    balance.add_argument("--json", metavar="FILE", help="also write the results there")
    balance.add_argument("--out", default=str(files.output("golden", "balance")), metavar="DIR",
                         help="folder of the picture (default %(default)s)")


def prepare_balance(args: Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    words = args.limit.split(",")
    try:
        limits = [float(word) / 100 for word in words]
    except ValueError:
        limits = []
    if len(limits) not in (1, len(args.networks)) or not all(0 <= limit <= 10 for limit in limits):
        raise OptionError(f"--limit must be percent, 0 to 1000, one or {len(args.networks)} with commas between, not "
                          f"{shown(args.limit)}")
    if len(limits) == 1:
        limits *= len(args.networks)
    if len(set(args.networks)) != len(args.networks):
        raise OptionError("NETWORK must be given once each")
    trials, jobs = whole("trials", args.trials, 2, 100_000), whole("jobs", args.jobs, 1, 256)
    seed = whole("seed", args.seed, 0, 2 ** 31 - 1)
    folder, path = writable_folder("out", args.out), None if args.json is None else writable_file("json", args.json)
    need("joblib", "torch")
    return partial(_balance, args.networks, limits, trials, jobs, seed, folder, path)


def _balance(networks, limits, trials, jobs, seed, folder, path):
    from .point import beaten, front, options, smallest
    from .search import search  # with joblib

    console = Console(highlight=False)
    bar = Bars(console)
    make_folder("out", folder)
    with bar.progress:
        move = bar("accelerators")
        points = search(networks, dict(zip(networks, limits, strict=True)), trials, jobs, seed, move)
    usual = points[0]
    bounds = {name: (1 + limit) * usual.cycles[name] for name, limit in zip(networks, limits, strict=True)}
    best = smallest(points, bounds)
    fronts = {name: front(points, name) for name in networks}
    presets = {name: (each, beaten(each, points)) for name, each in zip(SYSTEMS, points, strict=False)}
    console.print(_table(points, networks, usual, best, fronts))
    for name, (_, other) in presets.items():
        said = "none is better" if other is None else f"better is {options(other.values) or 'the default'}"
        console.print(f"{name}: {said}", markup=False, soft_wrap=True)
    with writing("out", folder):
        picture = _draw(folder / "balance.png", points, networks, {name: each for name, (each, _) in presets.items()},
                        best, fronts)
    console.print(f"picture: {picture}", markup=False, soft_wrap=True)
    if best is None:
        console.print("none keeps the limits")
    else:
        console.print(f"smallest within the limits: {best.as_dict()['options'] or 'the default'}", markup=False,
                      soft_wrap=True)
    if path is not None:
        with writing("json", path):
            files.write_json(path, {
                "networks": networks, "bounds": bounds, "best": best and best.as_dict(),
                "points": [each.as_dict() for each in points],
                "presets": {name: {"point": points.index(each), "beaten": None if other is None else
                                   points.index(other)} for name, (each, other) in presets.items()},
                "fronts": {name: [points.index(each) for each in found] for name, found in fronts.items()}})


def _table(points, networks, usual, best, fronts):
    """The fronts' points, the smallest first, between the default and the best."""
    table = Table(title="Accelerators that no other beats in area and cycles of a network, NAND2-equivalents")
    for head in ("logic", "memories", "all", *networks):
        table.add_column(head, justify="right")
    table.add_column("options")
    chosen = {id(each): each for found in fronts.values() for each in found} | {id(usual): usual}
    for each in sorted(chosen.values(), key=lambda each: each.area):
        taken = (f"{cycles:,} ({cycles / usual.cycles[name] - 1:+.1%})" if (cycles := each.cycles[name]) else "-"
                 for name in networks)
        table.add_row(f"{each.logic:,.0f}", f"{each.memories:,.0f}", f"{each.area:,.0f}", *taken,
                      each.as_dict()["options"], style="bold" if each is best else None)
    return table


def _draw(path: Path, points, networks, presets, best, fronts) -> Path:
    """Cycles over area, a panel for each network."""
    from ..pictures import COLOURS, figure, save

    rows = 1 + (len(networks) > 2)
    made, axes = figure(-(-len(networks) // rows), rows)
    marked = [(each, name, COLOURS[1]) for name, each in presets.items()] + (
        [] if best is None or best in presets.values() else [(best, "within the limits", COLOURS[2])])
    for panel, name in zip(axes, networks, strict=False):
        fit = [each for each in points if each.cycles[name] is not None]
        panel.plot([each.area / 1e6 for each in fit], [each.cycles[name] / 1e6 for each in fit], "o", color="#b0b0b0",
                   markersize=4)
        panel.step([each.area / 1e6 for each in fronts[name]], [each.cycles[name] / 1e6 for each in fronts[name]],
                   where="post", color=COLOURS[0], marker="o", markersize=5)
        for each, text, colour in marked:
            if each.cycles[name] is not None:
                place = each.area / 1e6, each.cycles[name] / 1e6
                panel.plot(*([value] for value in place), "D", color=colour)
                panel.annotate(text, place, xytext=(6, 6), textcoords="offset points", color=colour)
        panel.set_title(Path(name).stem if name.startswith("train:") else name)
        panel.set_xlabel("everything, million NAND2-equivalents")
        panel.set_ylabel("million cycles")
    save(made, path)
    return path
