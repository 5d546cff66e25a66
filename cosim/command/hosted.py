"""``python -m cosim run MODEL --exclude NAME``: programs, with layers of the model on the host between them."""

import argparse

from rich.console import Console

from hbfp.files import write_json
from hbfp.golden.command.progress import Bars
from hbfp.golden.lower.command import lowered, traffic
from hbfp.golden.machine.errors import MachineError
from hbfp.golden.perf.accelerator.layers import table
from hbfp.system import Accelerator
from hbfp.values import refuse, writing

from ..accelerator.device import Timing
from ..bench.comparison import Comparison
from ..emit import emit_accelerator


def work(args: argparse.Namespace, accelerator: Accelerator, timing: Timing) -> int:
    """Lower, build, run part by part, compare, tell; the exit status."""
    from ..accelerator.hosted import run

    console = Console(highlight=False)
    bar = Bars(console, args.quiet)
    with bar.progress:
        step = bar("lower")
        split = lowered(args.model, accelerator, exclude=args.exclude)
        step(1, 1)
        manifest = None
        if not args.machine:
            bar("generate")
            manifest = emit_accelerator(accelerator)
        try:
            found = run(manifest, split, timing=timing, layers=args.check == "layers", progress=bar("run"))
        except MachineError as error:
            raise refuse("MODEL", args.model, f"has no defined result: {error}") from None
    total, size = Comparison(), accelerator.core.rows * accelerator.lanes
    for each in found.runs:
        total += each.total
    for compared in found.host.values():
        total += compared
    cycles, rows = sum(each.result.cycles for each in found.runs), [row for each in found.runs for row in each.rows]
    title = f"{args.model} on {accelerator.name}, latency {timing.latency}, {timing.bandwidth} bytes a cycle"
    if rows:
        console.print(table(rows, cycles, size, title))
    for line in total.first[:5]:
        console.print(line, markup=False, soft_wrap=True)
    failed = [(each.result.cause.name.lower(), each.result.error_pc) for each in found.runs if each.result.cause]
    for cause, place in failed:
        console.print(f"[red]FAILED[/red]: error {cause} at instruction {place}")
    exact = all(each.model is None or each.model == each.result.times for each in found.runs)
    if not exact:
        console.print("[red]FAILED[/red]: the cycle model says other cycles")
    passed = not failed and total.compared > 0 and not total.mismatches and exact
    console.print(traffic(split.hosts, found.read, found.written), markup=False, soft_wrap=True)
    timed = "" if args.machine else f"; {cycles:,} cycles"
    console.print(f"{total.compared:,} numbers of {len(split.programs)} programs compared with PyTorch, "
                  f"{total.mismatches:,} differ{timed}: {'[green]passed' if passed else '[red]FAILED'}")
    if args.json:
        data = {"model": args.model, "accelerator": accelerator.name, "compared": total.compared,
                "mismatches": total.mismatches, "first": total.first, "cause": failed[0][0] if failed else None,
                "hosts": split.hosts, "read": found.read, "written": found.written, "layers": rows,
                "passed": passed} | ({} if args.machine else {
                        "latency": timing.latency, "bandwidth": timing.bandwidth, "cycles": cycles,
                        "model_cycles": sum(each.model.cycles for each in found.runs if each.model is not None)})
        with writing("json", args.json):
            write_json(args.json, data)
    return 0 if passed else 1
