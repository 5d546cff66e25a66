"""Combinations of the digits classifier's training on the accelerator: every number of every step, against PyTorch.

    python -m benchmarks.training                     all 32 on the golden machine, an epoch of 56 steps each
    python -m benchmarks.training --verilog 6         and the first six of them on the Verilog

Sizes of the array, widths, blocks, roundings of gradients and optimisers are crossed. The first six have every pair of
values. All run on accelerators that can round stochastically, so that eight are built. What was done stays in
build/training, and is done again if the code that decides it has changed.
"""

import itertools
import json
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from cosim.accelerator import training
from cosim.emit import emit_accelerator
from flow.figures import git
from golden.perf.accelerator.command import lowered_step
from hbfp import files
from hbfp.command import Parser, run
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator
from hbfp.values import OptionError, whole, writable_file

from .tables import add_json

#: What decides the results.
SOURCES = ("golden", "rtl", "gen", "hbfp", "cosim", "docs/examples")
EXAMPLES = {"SGD": "docs/examples/training.py", "AdamW": "docs/examples/adam.py"}
AXES = {"rows": (16, 32), "width": (8, 4), "block": ((1, 16), (16, 16)), "roles": ((), ("g",)),
        "optimiser": tuple(EXAMPLES)}
#: Which of two values the first runs have of each axis: any two axes have all four pairs.
PAIRWISE = ((0, 0, 0, 0, 0), (0, 0, 0, 1, 1), (0, 1, 1, 0, 0), (1, 0, 1, 1, 1), (1, 1, 0, 1, 0), (1, 1, 1, 0, 1))
#: Steps of an epoch.
EPOCH = 56


def combinations():
    """All of them, each a value of every axis: those that have all pairs first, then by what is built."""
    chosen = [*PAIRWISE, *(each for each in itertools.product((0, 1), repeat=len(AXES)) if each not in PAIRWISE)]
    return [dict(zip(AXES, (values[which] for values, which in zip(AXES.values(), each, strict=True)), strict=True))
            for each in chosen]


def hardware(rows, width, block, **_):
    """Name and title of the accelerator of a combination."""
    shape = "tiles" if block[0] > 1 else "blocks"
    return f"a{rows}_hbfp{width}_{shape}", f"{rows} x {rows}, HBFP{width}, {shape} ({block[0]}, {block[1]})"


def column(roles, optimiser, **_):
    """Name of the rest of a combination."""
    return f"{'stochastic' if roles else 'rne'}_{optimiser.lower()}"


def accelerator(rows, width, block, **_):
    """The accelerator of a combination."""
    fmt = HBFPFormat(mantissa=width, block=block, rounding="stochastic")
    return Accelerator(core=Design(format=fmt, rows=rows))


def measured(each, steps, verilog):
    """Train: what was compared, and cycles."""
    made, step = lowered_step(EXAMPLES[each["optimiser"]], accelerator(**each), stochastic=each["roles"], seed=1)
    if verilog:
        found = training.on_verilog(emit_accelerator(accelerator(**each)), step, made.batches(), steps, every=True)
    else:
        found = training.on_machine(step, made.batches(), steps, every=True)
    done = [result for result in found.results if result.cause is None]
    return {"commit": git("rev-parse", "HEAD"), "steps": len(done), "compared": found.total.compared,
            "differ": found.total.mismatches, "late": len(found.late), "seconds": found.seconds,
            "cycles": sum(result.cycles for result in done) / max(len(done), 1), "first": found.total.first,
            "losses": [int(loss) for loss in np.ravel(found.losses).view(np.uint32)]}


def kept(path, missing):
    """What a file has of the code as it is, or what ``missing`` gives, which it has then."""
    if path.exists():
        found = json.loads(path.read_text())
        if git("diff", "--name-only", found["commit"], "--", *SOURCES) == "":
            return found
    found = missing()
    files.write_json(path, found)
    return found


def prepare(args):
    """From parsed arguments to the work; OptionError if a value is not valid, or the code is no commit."""
    steps = whole("steps", args.steps, 1, 1000)
    verilog = whole("verilog", args.verilog, 0, len(combinations()))
    path = args.json and writable_file("json", args.json)
    if git("status", "--porcelain", "--", *SOURCES) != "":
        raise OptionError(f"what is measured must be a commit: {', '.join(SOURCES)}")
    return partial(work, steps, verilog, path)


def work(steps, verilog, path):
    """Run what is missing, print, and keep; status 1 if a number or a cycle differs."""
    console, rows = Console(), {}
    totals = {kind: {"runs": 0, "compared": 0, "differ": 0, "late": 0} for kind in ("golden", "verilog")}
    jobs = [("verilog", each) for each in combinations()[:verilog]] + [("golden", each) for each in combinations()]
    for kind, each in jobs:
        name, title = hardware(**each)
        place = files.output("training", f"{name}_{column(**each)}_{steps}_{kind}.json")
        found = kept(place, partial(measured, each, steps, kind == "verilog"))
        row = rows.setdefault(name, {"title": title, **{column(**other): None for other in combinations()}})
        if kind == "verilog":
            row[column(**each)] = found["cycles"]
        totals[kind] = {key: count + found.get(key, 1) for key, count in totals[kind].items()}
        console.print(f"{kind} {title}, {column(**each)}: {found['steps']} steps, {found['compared']:,} compared, "
                      f"{found['differ']:,} differ, {found['late']} late", highlight=False)
    console.print(table(rows))
    if path is not None:
        files.write_json(path, {"runs": dict(sorted(rows.items())), "totals": totals})
    return int(any(each["differ"] or each["late"] for each in totals.values()))


def table(rows):
    """Cycles of a step on the Verilog, of those that ran."""
    made = Table(title="Cycles of a step")
    columns = dict.fromkeys(column(**each) for each in combinations())
    for head in ("accelerator", *columns):
        made.add_column(head)
    for row in rows.values():
        made.add_row(row["title"], *("" if row[each] is None else f"{row[each]:,.0f}" for each in columns))
    return made


def main(argv=None):
    """Run the command; return its exit status."""
    parser = Parser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("--steps", default=str(EPOCH), metavar="N", help=f"of each run (default {EPOCH}, an epoch)")
    parser.add_argument("--verilog", default="0", metavar="N", help="how many also run on the Verilog (default 0)")
    add_json(parser)
    return run(parser, prepare, argv)


if __name__ == "__main__":
    raise SystemExit(main())
