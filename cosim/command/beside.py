"""``python -m cosim run MODEL --beside OTHER``: two networks that take turns on one accelerator."""

import argparse
from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.table import Table

from hbfp.files import write_json
from hbfp.golden.command.progress import Bars
from hbfp.golden.lower.command import lowered
from hbfp.system import SHARES, Accelerator
from hbfp.values import OptionError, refuse, writing

from ..accelerator.device import Timing
from ..emit import emit_accelerator

#: Options of ``run`` that belong to one program.
_ALONE = ("timeline", "trace", "program", "waves")


def prepare(args: argparse.Namespace, accelerator: Accelerator, timing: Timing) -> Callable[[], int]:
    """The work of two networks on an accelerator of two contexts; OptionError if a value is not valid."""
    for name in _ALONE:
        if getattr(args, name) is not None:
            raise OptionError(f"--{name} must not be given with --beside")
    if accelerator.contexts != 2:
        raise refuse("beside", args.beside, f"must have --contexts 2, not {accelerator.contexts}")
    try:
        half = accelerator.share(SHARES // 2)
    except ValueError as error:
        raise refuse("beside", args.beside, f"must have half of each memory. {error}") from None
    return partial(_work, args, accelerator, half, timing)


def _work(args, accelerator, half, timing):
    """Lower, build, run, compare, tell; the exit status."""
    console = Console(highlight=False)
    bar = Bars(console, args.quiet)
    names = (args.model, args.beside)
    with bar.progress:
        step = bar("lower")
        programs = []
        for number, (name, option) in enumerate(zip(names, ("model", "beside"), strict=True)):
            programs.append(lowered(name, half, yields=True, name=option))
            step(number + 1, 2)
        bar("generate")
        manifest = emit_accelerator(accelerator)

        from ..accelerator.beside import run

        outcome = run(manifest, accelerator, programs, timing=timing, layers=args.check == "layers",
                      progress=bar("build the model"))
    ended, sides = outcome.ended, outcome.sides
    title = (f"{args.model} beside {args.beside} on {accelerator.name}, latency {timing.latency}, {timing.bandwidth} "
             "bytes a cycle")
    table = Table(title=title, title_justify="left")
    for head in ("network", "cycles alone", "cycles that it had", "from doorbell to end", "compared", "differ"):
        table.add_column(head, justify="left" if head == "network" else "right")
    rows = []
    for name, side in zip(names, sides, strict=True):
        whole = side.together.times.cycles if side.together.times else 0
        rows.append({"name": name, "alone": side.alone.cycles, "had": side.together.cycles, "cycles": whole,
                     "model_cycles": side.model.times.cycles, "compared": side.compared.compared,
                     "mismatches": side.compared.mismatches, "first": side.compared.first,
                     "cause": side.together.cause and side.together.cause.name.lower()})
        table.add_row(name, f"{side.alone.cycles:,}", f"{side.together.cycles:,}", f"{whole:,}",
                      f"{side.compared.compared:,}", str(side.compared.mismatches))
    console.print(table)
    for side in sides:
        for line in side.compared.first[:5]:
            console.print(line, markup=False, soft_wrap=True)
    exact = all(side.exact for side in sides)
    if not exact:
        console.print("[red]FAILED[/red]: the cycle model says other cycles")
    compared, differ = (sum(row[what] for row in rows) for what in ("compared", "mismatches"))
    passed = exact and compared > 0 and not differ and all(row["cause"] is None for row in rows)
    console.print(f"together {ended.cycles:,} cycles, one after the other {outcome.alone:,}; {ended.changes} changes, "
                  f"{outcome.change:.1f} cycles each: {'[green]passed' if passed else '[red]FAILED'}")
    if args.json:
        data = {"model": args.model, "beside": args.beside, "accelerator": accelerator.name,
                "latency": timing.latency, "bandwidth": timing.bandwidth, "compared": compared, "mismatches": differ,
                "cycles": ended.cycles, "alone": outcome.alone, "changes": ended.changes,
                "change_cycles": outcome.change, "networks": rows, "seconds": outcome.seconds, "passed": passed}
        with writing("json", args.json):
            write_json(args.json, data)
    return 0 if passed else 1
