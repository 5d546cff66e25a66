"""``python -m cosim train``: training on the Verilated accelerator, against PyTorch.

MODEL.py defines model(), a torch.nn module in float32; loss(), of its output and a batch's targets; batches(), an
iterable of (inputs, targets); and optimiser(), of torch.optim, of parameters. Forward, loss, backward and update are
one program, which runs once for each step: weights and the optimiser's state stay in the accelerator's DRAM, and the
host writes the next batch. PyTorch does the same steps in the accelerator's arithmetic. The table has the parts of the
last step. If model() gives a list, all are trained by one program, each with its own weights; optimiser() is called
with the parameters and the number of each, and a batch is for all, or a list of one for each.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from rich.console import Console

from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import write_json
from hbfp.golden.command.progress import Bars
from hbfp.golden.machine.errors import MachineError
from hbfp.golden.perf.accelerator import products
from hbfp.golden.perf.accelerator.command import (
    add_memory_options,
    add_noise_options,
    add_outputs,
    check_outputs,
    lowered_step,
    memory_from_args,
    noise_from_args,
    write_files,
)
from hbfp.golden.perf.accelerator.layers import by_part, table
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import OptionError, choice, refuse, whole, writable_file, writing

from ..accelerator.device import BusError, Timing
from ..emit import EmitError, emit_accelerator
from ..simulate.verilator import BuildError
from .untimed import add_machine, check_untimed

EXAMPLES = """\
examples:
  python -m cosim train docs/examples/training.py --rows 8 --block 1,8 --steps 20
  python -m cosim train mine.py --rows 16 --mantissa 4 --block 16,16 --check steps --curve losses.png
  python -m cosim train mine.py --steps 200 --machine
"""
CHECKS = ("last", "steps", "layers")
STEPS_RANGE = (1, 1_000_000)


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m cosim train", description=__doc__.split("\n\n", 1)[1], epilog=EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="FILE.py, as above")
    add_system_options(parser, Accelerator, "accelerator")
    group = parser.add_argument_group("training")
    group.add_argument("--steps", default="10", metavar="N", help="steps, one batch each (default 10)")
    add_memory_options(group)
    group.add_argument("--check", default="last", metavar="WHAT", help="last: every gradient, weight and state behind "
                       "the last step; steps: behind each; layers: what each layer gives in each step, forward and "
                       "backward, too (default last); losses are compared at each")
    add_noise_options(group)
    add_machine(group)
    add_outputs(group)
    group.add_argument("--curve", metavar="FILE", help="draw the losses of the accelerator and of PyTorch, as PNG")
    group.add_argument("--program", metavar="FILE", help="also keep the program: instructions, memory, symbols")
    group.add_argument("--quiet", action="store_true", help="no progress bars")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    steps = whole("steps", args.steps, *STEPS_RANGE)
    choice("check", args.check, CHECKS)
    check_untimed(args)
    check_outputs(args)
    for name in ("curve", "program"):
        if getattr(args, name) is not None:
            setattr(args, name, writable_file(name, getattr(args, name)))
    accelerator = system_from_args(args, Accelerator)
    return partial(_work, args, accelerator, Timing(*memory_from_args(args, accelerator)), steps,
                   noise_from_args(args, accelerator))


def _work(args, accelerator, timing, steps, noise):
    """Lower, build, train, compare, tell; the exit status."""
    console, files = Console(highlight=False), []
    bar = Bars(console, args.quiet)
    with bar.progress:
        bar("lower")
        made, step = lowered_step(args.model, accelerator, layers=args.check == "layers", **noise)
        if made.mixed is not None and steps > (most := made.mixed.epochs * step.batches):
            raise refuse("steps", steps, f"must be at most {most}, the batches of the {made.mixed.epochs} epochs of "
                         f"mantissas() of {args.model}")
        options = {"every": args.check == "steps", "layers": args.check == "layers"}

        from ..accelerator import training

        try:
            if args.machine:
                outcome = training.on_machine(step, made.batches(), steps, progress=bar("train"), **options)
            else:
                bar("generate")
                outcome = training.on_verilog(emit_accelerator(accelerator), step, made.batches(), steps, timing=timing,
                                              building=bar("build the model"), progress=bar("train"), **options)
        except MachineError as error:
            raise refuse("MODEL", args.model, f"has no defined result: {error}") from None
        except ValueError as error:
            raise error if isinstance(error, OptionError) else refuse("MODEL", args.model, str(error)) from None
    ended = step.at(max(len(outcome.losses) - 1, 0))
    program, total, last = ended.lowered.program, outcome.total, outcome.results[-1]
    title = f"{args.model} on {accelerator.name}, latency {timing.latency}, {timing.bandwidth} bytes a cycle"
    size, macs = accelerator.core.rows * accelerator.lanes, sum(layer.macs for layer in program.layers)
    cycles, done = sum(each.cycles for each in outcome.results), len(outcome.losses)
    if last.cause is not None:
        console.print(f"[red]FAILED[/red]: error {last.cause.name.lower()} at instruction {last.error_pc} of "
                      f"{len(program.instructions)} in step {done}, after {last.cycles} cycles")
    modules = products.by_product(outcome.rows, made.modules)
    if outcome.rows:
        console.print(products.table(modules))
        console.print(table(by_part(outcome.rows, size), last.cycles, size, title))
    if outcome.losses:
        many = len(step.losses) > 1
        for number, (first, behind) in enumerate(zip(outcome.losses[0], outcome.losses[-1], strict=True)):
            console.print(f"{f'model {number}: ' if many else ''}loss {first:.6g} in the first step, {behind:.6g} in "
                          "the last")
    for line in total.first[:5]:
        console.print(line, markup=False, soft_wrap=True)
    files += write_files(args, program, last.times, title)
    if args.program is not None:    # what a driver is told beside the file
        files.append(("place", f"{ended.place.start}, {len(ended.place)} bytes"))
    if args.curve is not None and outcome.losses:
        from hbfp.golden.perf.accelerator import curves  # with matplotlib

        with writing("curve", args.curve):
            lines = {f"{name}{f', {number}' if len(step.losses) > 1 else ''}": [each[number] for each in losses]
                     for name, losses in (("accelerator", outcome.losses), ("PyTorch", outcome.wanted))
                     for number in range(len(step.losses))}
            files.append(("curve", curves.draw(args.curve, lines, f"{args.model} on {accelerator.name}")))
    for name, path in files:
        console.print(f"{name + ':':<10}{path}", markup=False, soft_wrap=True)
    if outcome.late:
        console.print(f"[red]FAILED[/red]: the cycle model says other cycles in steps {outcome.late[:5]}")
    passed = done == steps and total.compared > 0 and not total.mismatches and not outcome.late
    spent = "" if args.machine else f", {cycles:,} cycles"
    console.print(f"{total.compared:,} numbers compared with PyTorch, {total.mismatches:,} differ; {done:,} steps"
                  f"{spent}: {'[green]passed' if passed else '[red]FAILED'}")
    if args.json:
        timed = {} if args.machine else {
            "latency": timing.latency, "bandwidth": timing.bandwidth, "cycles": cycles,
            "model_cycles": outcome.modelled or None,
            "cycles_by_step": [each.cycles for each in outcome.results],
            "utilisation": macs * done / (size * cycles) if cycles else 0.0,
            "parts": by_part(outcome.rows, size), "modules": modules, "counters": last.counters}
        data = {"model": args.model, "accelerator": accelerator.name, "steps": done,
                "losses": [bits if len(bits) > 1 else bits[0] for bits in (
                    each.view(np.uint32).tolist() for each in outcome.losses)], "compared": total.compared,
                "mismatches": total.mismatches, "first": total.first,
                "cause": last.cause and last.cause.name.lower(), "error_pc": last.error_pc, "macs": macs * done,
                "place": [ended.place.start, len(ended.place)],
                "layers": outcome.rows or [{"name": each.name, "macs": each.macs} for each in program.layers],
                "seconds": outcome.seconds, "processor_seconds": outcome.processor, "passed": passed,
                "tensors": {name: {"compared": each.compared, "mismatches": each.mismatches}
                            for name, each in outcome.tensors.items()}} | timed
        with writing("json", args.json):
            write_json(args.json, data)
    return 0 if passed else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT, BusError: 1})
