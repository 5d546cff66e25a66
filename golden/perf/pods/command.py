"""``python -m golden pods``: networks on many pods, cycle by cycle."""

import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hbfp import files
from hbfp.values import OptionError, choice, readable_file, refuse, shown, whole, writable_file, writing

from .catalogue import NAMES, SIZE_RANGE

#: Ranges of what can be asked for.
PODS_RANGE, ARRAY_RANGE, PARTITION_RANGE, BATCH_RANGE = (2, 4096), (1, 1024), (1, 4096), (1, 1024)
WAITS = ("rows", "channels", "layer")


@dataclass(frozen=True)
class Setting:
    """What a command line asks for. ``networks``: names, or paths of files."""
    networks: tuple[str | Path, ...]
    pods: int
    rows: int
    columns: int
    interconnect: str
    partition: int
    batch: int
    waits: str
    train: bool


def add_pods(commands: Any, epilog: str) -> None:
    """Add the parser of ``pods``."""
    pods = commands.add_parser("pods", help="networks on many arrays behind a network of their own", epilog=epilog)
    pods.add_argument("--network", action="append", metavar="NAME",
                      help=f"{', '.join(NAMES)}, each also as NAME@SIZE (pixels, tokens), or a FILE.py with model() "
                           "and inputs(); more than once: tenants (default resnet50)")
    for name, default, text in (
            ("pods", "64", "a power of two"), ("rows", "32", "of a pod's array"), ("columns", "32", "of a pod's array"),
            ("batch", "1", "images or sequences at once")):
        pods.add_argument(f"--{name}", default=default, metavar="N", help=f"{text} (default {default})")
    pods.add_argument("--partition", metavar="P", help="rows of X in a tile operation (default: the array's rows)")
    pods.add_argument("--interconnect", default="butterfly-2", metavar="NAME",
                      help="butterfly-K, crossbar or benes (default butterfly-2)")
    pods.add_argument("--waits", default="rows", metavar="NAME",
                      help="what a tile waits for: the rows that it needs of the layers that are read, the same of the "
                           f"layers that its own channels come from, or all of the layers: {', '.join(WAITS)} "
                           "(default rows)")
    pods.add_argument("--train", action="store_true", help="of a FILE.py: with the gradients of all parameters")
    pods.add_argument("--json", metavar="FILE", help="also write the results there")


def prepare_pods(args: Namespace) -> Callable[[], None]:
    """From parsed arguments to the work."""
    pods = whole("pods", args.pods, *PODS_RANGE)
    if pods & (pods - 1):
        raise refuse("pods", args.pods, f"must be a power of two, {PODS_RANGE[0]} to {PODS_RANGE[1]}")
    rows, columns = (whole(name, getattr(args, name), *ARRAY_RANGE) for name in ("rows", "columns"))
    partition = rows if args.partition is None else whole("partition", args.partition, *PARTITION_RANGE)
    networks = tuple(_network(each, args.train) for each in args.network or ["resnet50"])
    setting = Setting(networks, pods, rows, columns, _interconnect(args.interconnect), partition,
                      whole("batch", args.batch, *BATCH_RANGE),
                      choice("waits", args.waits, WAITS), args.train)
    if setting.batch > 1 and any(isinstance(each, Path) for each in networks):
        raise refuse("batch", args.batch, "must not be given with a file, whose inputs() has its own")
    return partial(_run, setting, None if args.json is None else writable_file("json", args.json))


def _network(text, train):
    if text.endswith(".py"):
        return readable_file("network", text)
    name, at, size = text.partition("@")
    if name not in NAMES:
        raise refuse("network", text, f"must be a FILE.py or of {', '.join(NAMES)}")
    if train:
        raise refuse("network", text, "must be a FILE.py with --train")
    if at:
        try:
            whole("network", size, *SIZE_RANGE)
        except OptionError:
            raise refuse("network", text, f"must have a size of {SIZE_RANGE[0]} to {SIZE_RANGE[1]}") from None
    return text


def _interconnect(text):
    import re
    if text not in ("crossbar", "benes") and not re.fullmatch("butterfly-(1|2|4|8|16)", text):
        raise refuse("interconnect", text, "must be butterfly-K (K 1, 2, 4, 8 or 16), crossbar or benes")
    return text


def _graphs(setting):
    try:
        from .networks import from_file, named  # with PyTorch, which help does not need
    except ModuleNotFoundError as error:
        raise OptionError(f"networks need {error.name}: pip install 'hbfp[networks]'") from None
    for each in setting.networks:
        try:
            yield from_file(each, setting.train) if isinstance(each, Path) else named(each, setting.batch)
        except ModuleNotFoundError as error:
            raise OptionError(f"networks need {error.name}: pip install 'hbfp[networks]'") from None
        except ValueError as error:
            text = str(error) if isinstance(each, Path) else f"{each}: {error}"
            raise OptionError(f"--network {shown(text, 400)}") from None


def _run(setting, json_file):
    start = time.perf_counter()
    graphs = list(_graphs(setting))
    from . import simulate
    from .interconnect import parse
    from .machine import Machine

    machine = Machine(setting.pods, setting.rows, setting.columns, parse(setting.interconnect))
    outcome = simulate.run([simulate.Tenant(each) for each in graphs], machine, setting.partition, setting.waits)
    figures = outcome.figures()
    seconds = time.perf_counter() - start
    table = Table(title=f"{setting.pods} pods of {setting.rows} x {setting.columns}, {setting.interconnect}, "
                        f"operations of {setting.partition} rows")
    for head in ("network", "products", "MACs", "operations", "cycles"):
        table.add_column(head, justify="left" if head == "network" else "right")
    counts = [sum(int(each.prod()) for each in outcome.tiles.shape[outcome.tenant == number])
              for number in range(len(graphs))]
    for graph, count, end in zip(graphs, counts, figures["finished"], strict=True):
        table.add_row(graph.name, str(len(graph.gemms)), f"{graph.macs:.4g}", str(count), str(end))
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{figures['cycles']} cycles, {figures['rounds']} rounds of {figures['round_cycles']}; pods taken "
                  f"{100 * figures['occupancy']:.1f} %, array used {100 * figures['utilisation']:.1f} %; "
                  f"{seconds:.1f} s", soft_wrap=True)
    if json_file is not None:
        with writing("json", json_file):
            files.write_json(json_file, {"networks": [each.name for each in graphs], "pods": setting.pods,
                                         "interconnect": setting.interconnect, "partition": setting.partition,
                                         **figures, "seconds": seconds})
