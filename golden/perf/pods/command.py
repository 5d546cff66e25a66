"""``python -m golden pods``: networks on many pods, cycle by cycle; and the studies."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hbfp import files
from hbfp.extras import need
from hbfp.values import (
    JOBS_RANGE,
    OptionError,
    address,
    choice,
    number,
    readable_file,
    refuse,
    whole,
    writable_file,
    writable_folder,
)

from . import power
from .catalogue import BANKS, BERTS, NAMES, POLICIES, PUBLISHED_BERTS, SIZE_RANGE, STUDIES, WAITS
from .interconnect import Interconnect, parse
from .tile_bytes import least_bank

#: Ranges of what can be asked for.
PODS_RANGE, ARRAY_RANGE, PARTITION_RANGE, BATCH_RANGE = (2, 4096), (1, 1024), (1, 4096), (1, 1024)
CHAIN_RANGE = (1, 1 << 16)
BANK_RANGE, DRAM_RANGE, ARRIVAL_RANGE, PRIORITY_RANGE = (1, 1 << 20), (1e-3, 1e6), (0, 10**9), (0, 1000)


@dataclass(frozen=True)
class Setting:
    """What a command line asks for; ``bank`` is in bytes, ``dram`` in GB/s.

    ``networks`` has names, or paths of files; where it has none, they are the study's.
    """
    networks: tuple[str | Path, ...]
    pods: int
    rows: int
    columns: int
    interconnect: Interconnect
    partition: int
    policy: str
    batch: int
    waits: str
    banks: str
    chain: int
    train: bool
    arrivals: tuple[int, ...]
    priorities: tuple[int, ...]
    bank: int
    dram: float | None
    constants: Any
    study: str | None
    view: bool
    jobs: int
    scheduler: str | None
    out: Path
    json: Path | None


def add_pods(commands: Any) -> None:
    """Add the parser of ``pods``."""
    pods = commands.add_parser("pods", help="networks on many arrays behind a network of their own")
    pods.add_argument("--network", action="append", metavar="NAME",
                      help=f"{', '.join(NAMES)}, each also as NAME@SIZE (pixels, tokens), or a FILE.py with model(), "
                           "one or a list, and inputs(); more than once: tenants (default resnet50)")
    for name, default, text in (
            ("pods", "64", "a power of two"), ("rows", "32", "of a pod's array"), ("columns", "32", "of a pod's array"),
            ("batch", "1", "images or sequences at once"), ("bank", "256", "kB of a bank")):
        pods.add_argument(f"--{name}", default=default, metavar="N", help=f"{text} (default {default})")
    pods.add_argument("--interconnect", default="butterfly-2", metavar="NAME",
                      help="butterfly-K, crossbar or benes (default butterfly-2)")
    pods.add_argument("--policy", default="first-fit", metavar="NAME", help="first-fit or adaptive (default first-fit)")
    pods.add_argument("--partition", metavar="P", help="first-fit: rows of X in an operation (default: the array's)")
    pods.add_argument("--waits", metavar="NAME",
                      help="first-fit: what a tile waits for, the rows that it needs of the layers that are read, the "
                           f"same of those that its channels come from, or whole layers: {', '.join(WAITS)} "
                           "(default rows)")
    pods.add_argument("--banks", metavar="NAME",
                      help="first-fit: tiles lie in the banks in turn, numbered through the network, or from bank 0 in "
                           f"each product: {', '.join(BANKS)} (default network)")
    pods.add_argument("--chain", metavar="N",
                      help="most operations along K whose sums go on from one to the next, the chains being added in "
                           "ascending order, as the hardware does (default: sums are added as they come)")
    pods.add_argument("--dram", metavar="GB/S", help="bandwidth of the DRAM; without, weights are there in time")
    pods.add_argument("--arrival", action="append", metavar="N", help="cycle in which a network comes; one for each")
    pods.add_argument("--priority", action="append", metavar="N", help="of a network, 0 first; one for each")
    pods.add_argument("--train", action="store_true", help="of a FILE.py: with the gradients of all parameters")
    pods.add_argument("--set", default="published", metavar="NAME",
                      help=f"constants of the power: {', '.join(power.SETS)}")
    pods.add_argument("--constants", metavar="FILE", help="a TOML file with constants that replace those of the set")
    pods.add_argument("--view", action="store_true", help="also draw the schedule, pods by rounds")
    pods.add_argument("--study", metavar="NAME", help=", ".join(STUDIES))
    pods.add_argument("--jobs", default="1", metavar="N", help="studies: processes (default 1)")
    pods.add_argument("--scheduler", metavar="ADDRESS", help="studies: of a Dask scheduler, tcp://host:8786")
    pods.add_argument("--json", metavar="FILE", help="also write the results there")
    pods.add_argument("--out", default=str(files.output("golden", "pods")), metavar="DIR",
                      help="folder for pictures, and tables as CSV (default %(default)s)")


def prepare_pods(args: Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    from . import report

    pods = whole("pods", args.pods, *PODS_RANGE)
    if pods & (pods - 1):
        raise refuse("pods", args.pods, f"must be a power of two, {PODS_RANGE[0]} to {PODS_RANGE[1]}")
    rows, columns = (whole(name, getattr(args, name), *ARRAY_RANGE) for name in ("rows", "columns"))
    policy = choice("policy", args.policy, POLICIES)
    study = None if args.study is None else choice("study", args.study, STUDIES)
    networks = tuple(_network(each, args.train) for each in args.network or ([] if study else ["resnet50"]))
    batch = whole("batch", args.batch, *BATCH_RANGE)
    if batch > 1 and any(isinstance(each, Path) for each in networks):
        raise refuse("batch", args.batch, "must not be given with a file, whose inputs() has its own")
    for name in ("partition", "waits", "banks"):
        if getattr(args, name) is not None and (policy == "adaptive" or study):
            raise refuse(name, getattr(args, name), "has no effect with a study, or with --policy adaptive")
    partition = rows if args.partition is None else whole("partition", args.partition, *PARTITION_RANGE)
    constants = _constants(args)
    bank = whole("bank", args.bank, *BANK_RANGE) * 1024
    least = least_bank(partition, rows, columns, constants[0].element_bytes)
    if bank < least:
        raise refuse("bank", args.bank, f"must hold two of the largest tile, {-(-least // 1024)} kB")
    _check_study(args, study, networks)
    need("torch", *(["torchvision"] if _images(networks, study) else []), *(["joblib"] if study else []),
         *(["matplotlib"] if study or args.view else []))
    setting = Setting(
        networks, pods, rows, columns, _interconnect(args.interconnect), partition, policy, batch,
        "rows" if args.waits is None else choice("waits", args.waits, WAITS),
        "network" if args.banks is None else choice("banks", args.banks, BANKS),
        0 if args.chain is None else whole("chain", args.chain, *CHAIN_RANGE), args.train,
        _each("arrival", args.arrival, len(networks), ARRIVAL_RANGE),
        _each("priority", args.priority, len(networks), PRIORITY_RANGE), bank,
        None if args.dram is None else number("dram", args.dram, *DRAM_RANGE), constants, study, args.view,
        whole("jobs", args.jobs, *JOBS_RANGE), address("scheduler", args.scheduler), writable_folder("out", args.out),
        None if args.json is None else writable_file("json", args.json))
    return partial(report.study if study else report.run, setting)


def _check_study(args, study, networks):
    """Refuse what has no effect on a study, or without one."""
    if study is None:
        if args.scheduler is not None:
            raise refuse("scheduler", args.scheduler, "has no effect without --study")
        return
    for name in ("arrival", "priority", "dram", "chain"):
        value = getattr(args, name)
        if value is not None:
            raise refuse(name, ",".join(value) if isinstance(value, list) else value, "has no effect with --study")
    if args.view:
        raise OptionError("--view: has no effect with --study")
    if study == "tenancy" and len(networks) % 2:
        raise refuse("network", networks[-1], "must be one of a pair for the study of tenancy")


def _images(networks, study):
    """Whether a network comes from torchvision."""
    berts = BERTS + PUBLISHED_BERTS
    return any(isinstance(each, str) and each.partition("@")[0] not in berts for each in networks) or bool(
        study and study != "fused" and not networks)


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
    try:
        return parse(text)
    except ValueError as error:
        raise refuse("interconnect", text, error) from None


def _each(name, values, count, limits):
    """A number for each network, zeros if none is given."""
    if values is None:
        return (0,) * count
    found = tuple(whole(name, each, *limits) for each in values)
    if len(found) != count:
        raise refuse(name, values[-1], f"must be given once for each of the {count} networks")
    return found


def _constants(args):
    """The constants of the power: (constants, sources)."""
    from ..prices import override

    constants = power.SETS[choice("set", args.set, power.SETS)]()
    if args.constants is None:
        return constants
    try:
        return override(*constants, readable_file("constants", args.constants))
    except ValueError as error:
        raise error if isinstance(error, OptionError) else OptionError(f"--constants {error}") from None
