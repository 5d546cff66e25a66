"""``python -m golden space`` and ``dispatch``: the analytic design space, and inference beside training."""

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hbfp import files
from hbfp.values import (
    OptionError,
    choice,
    make_folder,
    number,
    readable_file,
    refuse,
    whole,
    writable_file,
    writable_folder,
    writing,
)

from ..spec.dispatch import DEPTH_RANGE, SHARE_WHOLE

#: Latency bounds that the table of the design space has, microseconds.
BOUNDS = (50, 500)
#: Policies that serve requests, by name.
POLICIES = ("priority", "greedy", "alternate", "inference", "limited")
NUMBERS = ("hbfp8", "hbfp6", "hbfp4", "bf16", "int8")
MOST_REQUESTS = 100_000_000


def add_space(commands: Any) -> None:
    """Add the parser of ``space``."""
    space = commands.add_parser("space", help="throughput, power and area against latency, analytically")
    space.add_argument("--number", default="hbfp8", metavar="NAME", help=f"of `points`: {', '.join(NUMBERS)}")
    space.add_argument("--set", default="published", metavar="NAME",
                       help="constants: published, or measured (this project's areas)")
    space.add_argument("--constants", metavar="FILE", help="a TOML file with constants that replace those of the set")
    space.add_argument("--workload", default="lstm", metavar="NAME", help="lstm, resnet50, bert")
    _outputs(space, "space")


def add_dispatch(commands: Any) -> None:
    """Add the parser of ``dispatch``."""
    dispatch = commands.add_parser("dispatch", help="latency of inference and time for training, by simulation")
    for name, default, text in (
            ("load", "0.5", "share of the time that full batches would take, 0.001 to 1.5"),
            ("batch", "14", "requests of a batch"),
            ("timeout", "3", "times of a batch after which a part of one is due"),
            ("quantum", "0.05", "time of a quantum of training, in times of a batch"),
            ("policy", "priority", f"{', '.join(POLICIES)}"),
            ("share", "4", "limited: sixteenths of the time that training may have"),
            ("requests", "1000000", "how many"),
            ("arrivals", "poisson", "poisson, bursts, day, or a file with a time a line, in times of a batch"),
            ("seed", "1", "of the arrivals")):
        dispatch.add_argument(f"--{name}", default=default, metavar="N" if name not in ("policy", "arrivals") else
                              "NAME", help=f"{text} (default {default})")
    dispatch.add_argument("--depth", metavar="N", help="requests that the queue holds (default: without end)")
    dispatch.add_argument("--study", action="store_true", help="also sweep loads and timeouts, with a picture")
    _outputs(dispatch, "dispatch")


def _outputs(parser, name):
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    parser.add_argument("--out", default=str(files.output("golden", name)), metavar="DIR",
                        help="folder for the table as CSV and the picture (default %(default)s)")


def _checked_outputs(args):
    return (writable_folder("out", args.out), None if args.json is None else writable_file("json", args.json))


def prepare_space(args: Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    from .constants import SETS
    from .prices import override
    from .workloads import WORKLOADS

    choice("number", args.number, NUMBERS)
    choice("set", args.set, SETS)
    choice("workload", args.workload, WORKLOADS)
    constants = {name: SETS[args.set](name) for name in NUMBERS}
    if args.constants is not None:
        path = readable_file("constants", args.constants)
        try:
            constants = {name: override(*pair, path) for name, pair in constants.items()}
        except ValueError as error:
            raise OptionError(f"--constants {error}") from None
    return partial(_space, args.number, constants, args.workload, *_checked_outputs(args))


def _space(number_name, constants, workload, folder, json_file):
    from . import pictures
    from .prices import as_dict
    from .space import Point, as_dicts, best, front, sweep
    from .workloads import WORKLOADS

    products, text = WORKLOADS[workload]
    points = {name: sweep(each, products) for name, (each, _) in constants.items()}
    table = Table(title=f"Most TOp/s within a latency, {text}")
    heads = ("number", "one sample", *(f"{bound} us" for bound in BOUNDS), "500 us / one",
             "at 50 us: rows, columns, GHz")
    for head in heads:
        table.add_column(head, justify="left" if head == "number" else "right")
    rows = []
    for name, found in points.items():
        one = best([each for each in found if each.rows == 1])
        within = [best(found, bound) for bound in BOUNDS]
        rows.append({"number": name, "one": one and one.tops, **{f"{bound}_us": each and each.tops for bound, each in
                                                                  zip(BOUNDS, within, strict=True)},
                     f"at_{BOUNDS[0]}_us": within[0] and {key: getattr(within[0], key) for key in (
                         "rows", "columns", "ghz")}})
        table.add_row(name, *(f"{each.tops:.0f}" if each else "-" for each in (one, *within)),
                      f"{within[1].tops / one.tops:.2f}" if one and within[1] else "-",
                      f"{within[0].rows}, {within[0].columns}, {within[0].ghz}" if within[0] else "-")
    console = Console(highlight=False)
    console.print(table)
    make_folder("out", folder)
    with writing("out", folder):
        files.write_csv(folder / "space.csv", ("number", *Point.__dataclass_fields__), [
            {"number": name, **each} for name, found in points.items() for each in as_dicts(front(found))])
        pictures.space(folder / "space.png", {name: front(found) for name, found in points.items()}, text)
    console.print(f"front {folder}/space.csv, picture {folder}/space.png", soft_wrap=True)
    _write_json(json_file, {"number": number_name, "workload": workload, "best": rows,
                            "points": as_dicts(points[number_name]), "front": as_dicts(front(points[number_name])),
                            "constants": as_dict(*constants[number_name])})


def _write_json(path, data):
    if path is not None:
        with writing("json", path):
            files.write_json(path, data)


def prepare_dispatch(args: Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    from .dispatch import arrivals

    batch = whole("batch", args.batch, 1, DEPTH_RANGE[1])
    timeout, quantum = number("timeout", args.timeout, 0, 1e6), number("quantum", args.quantum, 1e-4, 1e6)
    load, count = number("load", args.load, 0.001, 1.5), whole("requests", args.requests, 1, MOST_REQUESTS)
    share, seed = whole("share", args.share, 1, SHARE_WHOLE), whole("seed", args.seed, 0, 2**32 - 1)
    depth = None if args.depth is None else whole("depth", args.depth, batch, DEPTH_RANGE[1])
    name = choice("policy", args.policy, POLICIES)
    if args.arrivals not in arrivals.KINDS:
        path = readable_file("arrivals", args.arrivals)
        try:
            times = arrivals.read(path)
        except (ValueError, UnicodeDecodeError) as error:
            raise OptionError(f"--arrivals {error}") from None
        if args.study:
            raise refuse("study", "", "must not be given with arrivals from a file, which have one load")
    else:
        times = None
    setting = {"load": load, "batch": batch, "timeout": timeout, "quantum": quantum, "policy": name, "share": share,
               "requests": count, "arrivals": args.arrivals, "seed": seed, "depth": depth}
    return partial(_dispatch, setting, times, args.study, *_checked_outputs(args))


def _dispatch(setting, times, study, folder, json_file):
    from .dispatch import study as sweeps  # with NumPy, which help does not need

    console = Console(highlight=False)
    result = sweeps.run_setting(setting, times)
    sweep = sweeps.run(setting, console) if study else None
    rows = [(setting["policy"], setting["load"] if times is None else None, result),
            *((row["policy"], row["load"], row) for row in (sweep or {"loads": []})["loads"])]
    table = Table(title=f"Batches of {setting['batch']}, timeout {setting['timeout']:g}, quanta of "
                        f"{setting['quantum']:g}; times in those of a batch")
    for head in ("policy", "load", "p50", "p99", "longest", "training, % of the time", "of what is idle", "fill, %"):
        table.add_column(head, justify="left" if head == "policy" else "right")
    for name, load, each in rows:
        idle = 1 - load if load is not None and load < 1 else None
        table.add_row(name, "file" if load is None else f"{load:g}", f"{each['p50']:.2f}", f"{each['p99']:.2f}",
                      f"{each['max']:.2f}", f"{100 * each['training']:.1f}",
                      f"{each['training'] / idle:.2f}" if idle else "-", f"{100 * each['fill']:.1f}")
    console.print(table)
    for name, load in dict.fromkeys((name, load) for name, load, _ in rows):
        most = sweeps.served(name, setting["quantum"])
        if load is not None and load >= most:
            console.print(f"load {load:g}, {name}: loads below {most:.3g} are served; above, the queue grows without "
                          "end, and latencies with the number of requests", soft_wrap=True)
    if sweep:
        make_folder("out", folder)
        with writing("out", folder):
            sweeps.write(sweep, Path(folder))
        console.print(f"sweeps {folder}/dispatch.csv, picture {folder}/dispatch.png", soft_wrap=True)
    _write_json(json_file, {"setting": setting, **result, **({"study": sweep} if sweep else {})})
