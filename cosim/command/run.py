"""``python -m cosim run``: a network on the Verilated accelerator, compared bit for bit with PyTorch under golden.nn.

MODEL is a file with model(), a torch.nn.Module, and inputs(), a tuple of tensors; or a name of the zoo. A list of
modules is a job: one program, in which they take turns layer by layer; inputs() may then give a list of a tuple for
each. The table has a row for each layer: its cycles, how much of them the array multiplies, what was under way where
it did not, and the bytes that loads and stores move.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from rich.console import Console

from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import output, write_json
from hbfp.golden.command.progress import Bars
from hbfp.golden.lower.command import add_exclude, check_exclude
from hbfp.golden.lower.command import lowered as lowered_network
from hbfp.golden.lower.names import zoo_text
from hbfp.golden.machine.errors import MachineError
from hbfp.golden.perf.accelerator.command import (
    add_memory_options,
    add_outputs,
    check_outputs,
    memory_from_args,
    write_files,
)
from hbfp.golden.perf.accelerator.layers import table
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import choice, make_folder, refuse, writable_file, writing

from ..accelerator.device import BusError, Timing
from ..emit import EmitError, emit_accelerator
from ..simulate.verilator import BuildError
from ..simulate.views import write_views
from . import beside, hosted
from .untimed import add_machine, check_untimed

EXAMPLES = """\
examples:
  python -m cosim run mlp                           a network of the zoo on the default accelerator
  python -m cosim run mine.py --rows 16 --mantissa 4 --check layers
  python -m cosim run mlp --beside transformer --contexts 2
  python -m cosim run mine.py --machine                       bits alone, in seconds
  python -m cosim run mine.py --exclude body.norm --machine   a layer in plain PyTorch, between two programs
  python -m cosim run mine.py --latency 100 --bandwidth 32 --timeline mine.png --trace mine.json
"""
CHECKS = ("outputs", "layers")
#: ``--waves`` without a file.
HERE = object()


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m cosim run", epilog=EXAMPLES,
                    description="\n".join((__doc__.split("\n\n", 1)[1], zoo_text())))
    parser.add_argument("model", metavar="MODEL", help="FILE.py, or a name of the zoo, above")
    add_system_options(parser, Accelerator, "accelerator")
    group = parser.add_argument_group("run")
    add_memory_options(group)
    group.add_argument("--check", default="outputs", metavar="WHAT", help="outputs, or layers: every layer's tensor, "
                       "too (default outputs)")
    add_outputs(group)
    group.add_argument("--beside", metavar="MODEL", help="another network that takes turns with it: each has half of "
                       "the memories, and yields behind each layer (--contexts 2)")
    add_machine(group)
    add_exclude(group)
    group.add_argument("--program", metavar="FILE", help="also keep the program: instructions, memory, symbols")
    group.add_argument("--waves", nargs="?", const=HERE, metavar="FILE", help="also write a VCD trace of the whole "
                       "run, and views of it for GTKWave and Surfer")
    group.add_argument("--quiet", action="store_true", help="no progress bars")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    choice("check", args.check, CHECKS)
    check_untimed(args)
    check_exclude(args, ("timeline", "trace", "beside", "program", "waves"))
    check_outputs(args)
    if args.program is not None:
        args.program = writable_file("program", args.program)
    if args.waves not in (None, HERE):
        args.waves = writable_file("waves", args.waves)
    accelerator = system_from_args(args, Accelerator)
    timing = Timing(*memory_from_args(args, accelerator))
    if args.exclude:
        return partial(hosted.work, args, accelerator, timing)
    return partial(_work, args, accelerator, timing) if args.beside is None else beside.prepare(args, accelerator,
                                                                                                timing)


def _work(args, accelerator, timing):
    """Lower, build, run, compare, tell; the exit status."""
    console, files = Console(highlight=False), []
    bar = Bars(console, args.quiet)
    with bar.progress:
        step = bar("lower")
        lowered = lowered_network(args.model, accelerator)
        step(1, 1)
        outcome, waves = (_on_machine if args.machine else _on_verilog)(args, accelerator, lowered, timing, bar)
    program, result, total = lowered.program, outcome.result, outcome.total
    if result.cause is not None:
        console.print(f"[red]FAILED[/red]: error {result.cause.name.lower()} at instruction {result.error_pc} of "
                      f"{len(program.instructions)}, after {result.cycles} cycles")
    size = accelerator.core.rows * accelerator.lanes
    title = f"{args.model} on {accelerator.name}, latency {timing.latency}, {timing.bandwidth} bytes a cycle"
    if outcome.rows:
        console.print(table(outcome.rows, result.cycles, size, title))
    if lowered.distances:
        beside = ", ".join(f"{name} {far.largest:.2g} ({far.different:,} of {far.elements:,} differ)"
                           for name, far in sorted(lowered.distances.items()))
        console.print(f"largest distance from PyTorch's own functions: {beside}", markup=False, soft_wrap=True)
    for line in total.first[:5]:
        console.print(line, markup=False, soft_wrap=True)
    files += write_files(args, program, result.times, title)
    if waves:
        files += [("waves", waves[0]), *(("view", each) for each in waves[1:])]
    for name, path in files:
        console.print(f"{name + ':':<10}{path}", markup=False, soft_wrap=True)
    exact = outcome.model is None or outcome.model == result.times
    if not exact:
        console.print(f"[red]FAILED[/red]: the cycle model says other cycles: {outcome.model.cycles} in all")
    passed = result.cause is None and total.compared > 0 and not total.mismatches and exact
    macs = sum(layer.macs for layer in program.layers)
    cycles = "" if args.machine else f"; {result.cycles:,} cycles"
    speed = (f"; {macs / outcome.seconds / 1e6:.1f} million MAC/s, {macs / outcome.processor / 1e6:.1f} of processor "
             "time") if macs else ""
    console.print(f"{total.compared:,} numbers compared with PyTorch, {total.mismatches:,} differ{cycles}"
                  f"{speed}: {'[green]passed' if passed else '[red]FAILED'}")
    if args.json:
        timed = {} if args.machine else {
            "latency": timing.latency, "bandwidth": timing.bandwidth, "cycles": result.cycles,
            "model_cycles": outcome.model and outcome.model.cycles, "counters": result.counters,
            "utilisation": macs / (size * result.cycles) if result.cycles else 0.0}
        data = {"model": args.model, "accelerator": accelerator.name, "compared": total.compared,
                "mismatches": total.mismatches, "first": total.first,
                "cause": result.cause and result.cause.name.lower(), "error_pc": result.error_pc, "macs": macs,
                "layers": outcome.rows or [{"name": each.name, "macs": each.macs} for each in program.layers],
                "seconds": outcome.seconds, "processor_seconds": outcome.processor, "passed": passed,
                "distances": {name: asdict(far) for name, far in lowered.distances.items()},
                "tensors": {name: {"compared": each.compared, "mismatches": each.mismatches}
                            for name, each in outcome.tensors.items()}} | timed
        with writing("json", args.json):
            write_json(args.json, data)
    return 0 if passed else 1


def _on_machine(args, accelerator, lowered, timing, bar):
    """What came of the run on the golden machine; no waves."""
    from ..accelerator.untimed import run as run_network

    bar("run")
    try:
        return run_network(lowered, args.check == "layers"), []
    except MachineError as error:
        raise refuse("MODEL", args.model, f"has no defined result: {error}") from None


def _on_verilog(args, accelerator, lowered, timing, bar):
    """What came of the run on the Verilog, and the file of its waves, if they are wanted, with those of its views."""
    from ..accelerator.network import run as run_network

    bar("generate")
    manifest, folder, waves = emit_accelerator(accelerator), output("cosim", accelerator.name), args.waves
    if waves is HERE:
        make_folder("waves", folder)
        waves = folder / "run.vcd"
    outcome = run_network(manifest, lowered, timing=timing, layers=args.check == "layers", waves=waves,
                          progress=bar("build the model"))
    return outcome, [] if waves is None else [waves, *write_views(manifest, waves)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT, BusError: 1})
