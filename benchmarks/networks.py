"""Ninety-nine small networks of torchvision, transformers and plain torch.nn: which lower, their bits, their cycles.

    python -m benchmarks.networks                                   all of them, on 32 x 32
    python -m benchmarks.networks bert vit --rows 8 --block 1,8     some of them
    python -m benchmarks.networks --rows 8 --block 1,8 --verilog    on the Verilog, too

Each network becomes a program that the golden machine runs; every tensor that PyTorch has, with the accelerator's
arithmetic, is compared bit by bit. Cycles are the cycle model's, and with --verilog the Verilog's beside them; of
layers that take more than twice SCALE-Sim's formula, the units that they wait for. What cannot be lowered has its
line. The exit status is 1 if a number or a cycle differs. torchvision comes with the extra `networks`, and both
libraries with the extra `experiments`.
"""

import time
from collections import Counter
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from rich.console import Console

from cosim.accelerator.device import Timing
from cosim.accelerator.network import run as on_verilog
from cosim.accelerator.untimed import run as on_machine
from cosim.emit import emit_accelerator
from golden.lower.errors import LoweringError
from golden.lower.lowering import lower
from golden.perf.accelerator.command import add_memory_options, memory_from_args
from golden.perf.accelerator.layers import by_layer
from golden.perf.accelerator.model import times
from hbfp import files
from hbfp.command import Parser, run
from hbfp.extras import lacking
from hbfp.manifest import core_latency
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import OptionError, writable_file

from .families import FAMILIES, NETWORKS, network
from .tables import add_json

#: What is measured of a network that lowers.
MEASURED = ("compared", "differ", "cycles", "share", "formula", "products", "above", "waits")


def prepare(args):
    """From parsed arguments to the work; OptionError if a value is not valid."""
    accelerator = system_from_args(args, Accelerator)
    if unknown := [name for name in args.names if name not in (*FAMILIES, *NETWORKS)]:
        raise OptionError(f"NAME must be one of {', '.join((*FAMILIES, *NETWORKS))}, not {unknown[0]!r}")
    names = [each for name in args.names or FAMILIES for each in FAMILIES.get(name, [name])]
    if "transformers" in map(NETWORKS.get, names) and (line := lacking("transformers")) is not None:
        raise OptionError(f"NAME of a network of transformers: {line}")
    return partial(work, accelerator, memory_from_args(args, accelerator), names, args.verilog,
                   args.json and writable_file("json", args.json))


def measured(name: str, accelerator: Accelerator, memory: tuple[int, int], verilog: Any = None) -> dict[str, Any]:
    """A row of the table.

    Parameters
    ----------
    name : str
    accelerator : Accelerator
    memory : (int, int)
        The DRAM's latency and bytes a cycle.
    verilog : Manifest, optional
        Of the emitted accelerator, if the network is to run on its Verilog.

    Returns
    -------
    dict
        ``title``, ``lowered`` (1 or 0) and ``refused``, the line that says why not; numbers ``compared`` and how many
        ``differ``; ``cycles``, the ``share`` of the peak, cycles by SCALE-Sim's ``formula``, and how far the Verilog's
        cycles are from the model's, ``off``; layers with ``products``, those ``above`` twice the formula, and what most
        of these wait for, as text: units, each with the layers that ``waits`` for it longest. What is refused has None
        in place of what is measured.
    """
    begun = time.perf_counter()
    row: dict[str, Any] = {"title": name, "lowered": 1, "refused": ""}
    try:
        lowered = lower(*network(name), accelerator)
    except LoweringError as error:
        return row | {"lowered": 0, "refused": str(error)} | dict.fromkeys(MEASURED)
    program = lowered.program
    core = accelerator.core
    latency = core_latency(core)
    found = on_machine(lowered, layers=True)
    found_times = times(program, latency, *memory)
    cycles, layers = found_times.cycles, [each for each in by_layer(program, found_times) if each.get("scale_sim")]
    above = Counter(next(iter(each["waits"])) for each in layers if each["cycles"] > 2 * each["scale_sim"])
    macs = sum(layer.macs for layer in program.layers)
    row |= {"compared": found.total.compared, "differ": found.total.mismatches, "cycles": cycles,
            "share": macs / (cycles * core.rows * accelerator.lanes),
            "formula": sum(each["scale_sim"] for each in layers), "products": len(layers), "above": above.total(),
            "waits": ", ".join(f"{unit} {count}" for unit, count in above.most_common())}
    if verilog is not None:
        real = on_verilog(verilog, lowered, timing=Timing(*memory), layers=True)
        row |= {"differ": row["differ"] + real.total.mismatches, "off": abs(real.result.cycles - cycles)}
    return row | {"seconds": round(time.perf_counter() - begun, 1)}


def work(accelerator, memory, names, verilog, path):
    """Lower, run, print a line for each; the exit status."""
    console, rows = Console(highlight=False), {}
    emitted = emit_accelerator(accelerator) if verilog else None
    for name in names:
        row = rows[name] = measured(name, accelerator, memory, emitted)
        text = row["refused"] or (f"{row['compared']:,} numbers, {row['differ']:,} differ; {row['cycles']:,} cycles, "
                                  f"{row['share']:.1%} of the peak, formula {row['formula']:,}"
                                  + (f", Verilog's {row['off']:,} off" if verilog else "") + f"; {row['seconds']} s")
        console.print(f"{name}: {text}", markup=False, soft_wrap=True)
    total = counted(rows.values())
    console.print(f"{total['lowered']} of {total['networks']} lowered; {total['compared']:,} numbers compared with "
                  f"PyTorch, {total['differ']:,} differ", soft_wrap=True)
    if path is not None:
        kept = {family: {name: {key: each for key, each in rows[name].items() if key != "seconds"}
                         for name in made if name in rows} for family, made in FAMILIES.items()}
        files.write_json(path, {family: found for family, found in kept.items() if found} | {
            "counts": {family: counted(found.values()) for family, found in kept.items() if found},
            "tools": {name: version(name) for name in ("torch", "torchvision", "transformers") if find_spec(name)}})
    return int(total["differ"] + total["off"] > 0)


def counted(rows):
    """Networks, and how many of them lower; numbers compared, how many differ, and cycles that are off, in all."""
    lowered = [row for row in rows if row["lowered"]]
    return {"networks": len(rows), "lowered": len(lowered)} | {
        key: sum(row.get(key, 0) for row in lowered) for key in ("compared", "differ", "off", "products", "above")}


def make_parser():
    """The command line."""
    parser = Parser(prog="python -m benchmarks.networks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks, or families of them (default all): "
                        + ", ".join((*FAMILIES, *NETWORKS)))
    add_system_options(parser, Accelerator, "accelerator")
    add_memory_options(parser)
    parser.add_argument("--verilog", action="store_true", help="run each on the Verilog, too, and compare its cycles "
                        "with the model's")
    add_json(parser)
    return parser


def main(argv=None):
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv)


if __name__ == "__main__":
    raise SystemExit(main())
