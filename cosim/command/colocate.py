"""``python -m cosim colocate``: one network serves, another trains, on the Verilated accelerator with a dispatcher.

SERVE.py defines model() and inputs(), a full batch of requests along their first dimension, and, if it likes,
requests(), what clients ask, more samples of the same kind; TRAIN.py is as for python -m cosim train, or none. Every
answer is compared with what PyTorch says of that request alone, every loss, and at last every gradient, weight and
state, with a training in PyTorch alone, and every latency with the models: the dispatcher's twin, batches and quanta of
the cycle model. The bound is known before anything runs.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rich.console import Console

from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import write_json
from hbfp.golden.command.progress import Bars
from hbfp.golden.machine.errors import MachineError
from hbfp.golden.perf.accelerator.colocate.command import (
    PLACES,
    add_arrival_options,
    arrivals_from_args,
    check_dispatched,
    given_to_both,
    served,
)
from hbfp.golden.perf.accelerator.command import (
    add_memory_options,
    add_noise_options,
    lowered_step,
)
from hbfp.manifest import core_latency
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import refuse, writing

from ..accelerator.device import BusError, Timing
from ..emit import EmitError, emit_accelerator
from ..simulate.verilator import BuildError
from .descriptors import add_ring, corrupt_from_args, ring_of
from .untimed import add_machine

EXAMPLES = """\
examples:
  python -m cosim colocate docs/examples/serving.py docs/examples/training.py --rows 16 --block 1,16
  python -m cosim colocate serve.py none --load 0.9 --requests 300 --arrivals bursts
  python -m cosim colocate serve.py train.py --machine --timeline both.png --trace both.json
  python -m cosim colocate serve.py train.py --ring --corrupt 0.1
"""
#: What the options are here if nobody gives them, where it is not what they are for the models alone.
USUAL = {"requests": "200"}


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m cosim colocate", description=__doc__.split("\n\n", 1)[1], epilog=EXAMPLES)
    parser.add_argument("serve", metavar="SERVE", help="FILE.py, as above, or a name of the zoo")
    parser.add_argument("train", metavar="TRAIN", help="FILE.py, as above, or none")
    add_system_options(parser, Accelerator, "accelerator")
    group = parser.add_argument_group("co-location")
    add_arrival_options(group, USUAL)
    add_memory_options(group)
    add_noise_options(group, seed=False)
    add_machine(group)
    add_ring(group)
    for name, text in (("json", "also write the results there"),
                       ("timeline", "draw requests, batches and quanta over time, and latencies, as PNG"),
                       ("trace", "write them for Perfetto or chrome://tracing")):
        group.add_argument(f"--{name}", metavar="FILE", help=text)
    group.add_argument("--quiet", action="store_true", help="no progress bars")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    asked = arrivals_from_args(args) | {"corrupt": corrupt_from_args(args)}
    accelerator = system_from_args(args, Accelerator, contexts=2, **PLACES,
                                   **({"dispatch_ring": True} if args.ring else {}))
    check_dispatched(accelerator)
    return partial(_work, args, asked, accelerator, *given_to_both(args, accelerator, ("json", "timeline", "trace")))


def _work(args, asked, accelerator, half, memory, noise):
    """Lower, plan, run, compare, tell; the exit status."""
    console = Console(highlight=False)
    bar = Bars(console, args.quiet)
    with bar.progress:
        bar("lower")
        both = _both(args, asked, accelerator, half, memory, noise, bar)

        from ..colocate import run as colocation

        try:
            if args.machine:
                bar("run")
                report = colocation.on_machine(both)
            else:
                bar("generate")
                report, shown = colocation.on_verilog(emit_accelerator(accelerator), both, timing=Timing(*memory),
                                                      progress=bar("build the model"))
                if shown.cause is not None:
                    console.print(f"[red]The training stopped[/red]: {shown.cause.name.lower()}")
        except MachineError as error:
            raise refuse("SERVE", args.serve, f"has no defined result: {error}") from None
    data = report.figures() | {"serve": args.serve, "train": args.train, "accelerator": accelerator.name,
                               "latency": memory[0], "bandwidth": memory[1], "load": asked["load"]}
    where = "golden machine" if args.machine else accelerator.name
    title = f"{args.serve} serves, {args.train} trains on {where}, load {asked['load']:g}"
    console.print(report.table(title))
    for line in (*report.answers.first[:3], *report.weights.first[:3]):
        console.print(line, markup=False, soft_wrap=True)
    from ..colocate.report import draw, trace

    for name, make in (("timeline", partial(draw, title=title)), ("trace", trace)):
        if getattr(args, name) is not None:
            with writing(name, getattr(args, name)):
                make(getattr(args, name), report)
            console.print(f"{name}: {getattr(args, name)}", markup=False, soft_wrap=True)
    if report.late:
        console.print(f"[red]FAILED[/red]: {report.late} requests have other times than the models say")
    console.print(f"{data['requests']:,} requests, {data['steps']:,} steps: "
                  f"{'[green]passed' if report.passed else '[red]FAILED'}")
    if args.json is not None:
        with writing("json", args.json):
            write_json(args.json, data)
    return 0 if report.passed else 1


def _both(args, asked, accelerator, half, memory, noise, bar):
    """Both networks, lowered, and the plan; OptionError if one cannot be."""
    from hbfp.golden.lower.alone import Alone  # with PyTorch
    from hbfp.golden.lower.errors import LoweringError
    from hbfp.golden.lower.source import requests
    from hbfp.golden.perf.accelerator.colocate.plan import Plan
    from hbfp.golden.perf.accelerator.colocate.quanta import giving_way

    from ..colocate.clients import Clients
    from ..colocate.run import Both, cycles

    serving, model, inputs = served(args.serve, half)
    try:
        given = requests(args.serve, inputs)
    except ValueError as error:
        raise refuse("SERVE", args.serve, str(error)) from None

    def lowered(apart):
        if args.train == "none":
            return None, None
        made, step = lowered_step(args.train, half, name="TRAIN", apart=apart, **noise)
        if made.mixed is not None:
            raise refuse("TRAIN", args.train, "must have one width in all epochs, without mantissas()")
        return made, step

    def planned(training):
        _, step = training
        bar("place yields")
        times = {name: asked[name] for name in ("timeout", "quantum", "patience")}
        return Plan.of(serving.full, step and step.lowered.program, accelerator, core_latency(accelerator.core),
                       *memory, batch=serving.batch, **times)

    try:
        (made, step), plan = giving_way(lowered, planned)
    except LoweringError as error:
        raise refuse("quantum", args.quantum, str(error)) from None
    found = cycles(asked, plan)
    clients = Clients(serving, Alone(model, half, given), len(found))
    ring = ring_of(accelerator, len(found), asked["corrupt"], memory, asked["seed"])
    if ring is not None:
        plan = replace(plan, reading=ring.reads.longest)
    return Both(accelerator, serving, clients, step, made and made.batches(), plan, found, ring)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT, BusError: 1})
