"""``python -m golden colocate``: one network serves, another trains in the gaps, from the cycle model alone."""

import os
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from hbfp import files
from hbfp.golden.command.progress import Bars
from hbfp.golden.lower.names import zoo_text
from hbfp.manifest import core_latency
from hbfp.options import add_system_options, system_from_args
from hbfp.system import SHARES, Accelerator
from hbfp.values import OptionError, number, readable_file, refuse, whole, writable_file, writing

from ..command import add_memory_options, add_noise_options, lowered_step, memory_from_args, noise_from_args

#: Of the options that say when requests come: name, default, text.
OPTIONS = (
    ("load", "0.5", "share of the time that full batches take, 0.001 to 0.99"),
    ("requests", "1000000", "how many"),
    ("timeout", "3", "times of a batch after which a part of one is due"),
    ("quantum", "0.05", "longest quantum of training, in times of a batch"),
    ("patience", "0", "times of a batch after which a quantum that has not given way is stopped; 0: never"),
    ("arrivals", "poisson", "poisson, bursts, day, or a file with a cycle a line"),
    ("seed", "1", "of the arrivals, and of what the training rounds stochastically"))
MOST_REQUESTS = 100_000_000
#: Requests that the queue holds, and those of the largest batch, if nobody says otherwise.
PLACES = {"dispatch": 64, "dispatch_batch": 32}


def add_colocate(commands: Any) -> None:
    """Add the parser of ``colocate``."""
    parser = commands.add_parser("colocate", help="one network serves, another trains in the gaps",
                                 description=f"One network serves requests, another trains in the gaps, on an "
                                 f"accelerator of two contexts; times of the cycle model.\n\n{zoo_text()}")
    parser.add_argument("serve", metavar="SERVE", help="FILE.py with model() and inputs(), a full batch of requests "
                        "along their first dimension; or a name of the zoo")
    parser.add_argument("train", metavar="TRAIN", help="FILE.py as for python -m golden perf --train; or none")
    add_arrival_options(parser)
    add_system_options(parser, Accelerator, "accelerator")
    add_memory_options(parser, " or several, commas between: a row for each")
    add_noise_options(parser, seed=False)
    add_epoch_option(parser)
    for name, text in (("json", "also write the results there"),
                       ("timeline", "draw requests, batches and quanta over time, or training over bandwidth, as PNG")):
        parser.add_argument(f"--{name}", metavar="FILE", help=text)


def add_arrival_options(parser: Any, usual: Mapping[str, str] | None = None) -> None:
    """Add the options that say when requests come and when batches are due; ``usual`` has defaults of some."""
    for name, default, text in OPTIONS:
        default = (usual or {}).get(name, default)
        parser.add_argument(f"--{name}", default=default, metavar="NAME" if name == "arrivals" else "N",
                            help=f"{text} (default {default})")


def arrivals_from_args(args: Namespace) -> dict[str, Any]:
    """The options of :func:`add_arrival_options` by name; OptionError if a value is not valid."""
    from ...dispatch import arrivals

    asked = {"load": number("load", args.load, 0.001, 0.99), "timeout": number("timeout", args.timeout, 0, 1e6),
             "quantum": number("quantum", args.quantum, 1e-6, 1e6),
             "patience": number("patience", args.patience, 0, 1e6),
             "requests": whole("requests", args.requests, 1, MOST_REQUESTS),
             "seed": whole("seed", args.seed, 0, 2**32 - 1), "arrivals": args.arrivals, "times": None}
    if args.arrivals not in arrivals.KINDS:
        path = readable_file("arrivals", args.arrivals)
        try:
            asked["times"] = arrivals.read(path)
        except (ValueError, UnicodeDecodeError) as error:
            raise refuse("arrivals", args.arrivals, str(error)) from None
    return asked


def add_epoch_option(parser: Any) -> None:
    """Add ``--epoch``, of a training whose epochs have programs of their own."""
    parser.add_argument("--epoch", metavar="N", help="where mantissas() of TRAIN gives layers other widths from epoch "
                        "to epoch: of which epoch the steps are, counted from 0")


def served(text: str, half: Accelerator) -> tuple[Any, Any, Any]:
    """A network as a program that serves, its model, and a full batch; OptionError if it cannot be one."""
    from hbfp.golden.lower.errors import LoweringError  # with PyTorch
    from hbfp.golden.lower.serving import lower_serving
    from hbfp.golden.lower.zoo import source

    try:
        model, inputs = source(text)
        if isinstance(model, list):
            raise ValueError("serves one model, not a job; the first of them would do")
        return lower_serving(model, inputs, half), model, inputs
    except (LoweringError, ValueError) as error:
        raise error if isinstance(error, OptionError) else refuse("SERVE", text, str(error)) from None


def step_of(args: Namespace, made: Any, step: Any) -> Any:
    """The step of the epoch that is asked for; OptionError if none is, and there are several."""
    if made.mixed is None:
        if args.epoch is not None:
            raise OptionError("--epoch must not be given where TRAIN has no mantissas()")
        return step
    if args.epoch is None:
        raise refuse("TRAIN", args.train, "has other widths from epoch to epoch; --epoch N would say which")
    return step.at(whole("epoch", args.epoch, 0, made.mixed.epochs - 1) * step.batches)


def given_to_both(args: Namespace, accelerator: Accelerator, files_: Sequence[str]) -> tuple[Any, ...]:
    """What both programs have: half of the memories, DRAM, and noise; options that name ``files_`` to be written become
    these. OptionError if a value is not valid.
    """
    try:
        half = accelerator.share(SHARES // 2)
    except ValueError as error:
        raise refuse("contexts", "2", f"must leave half of each memory. {error}") from None
    for name in files_:
        if getattr(args, name) is not None:
            setattr(args, name, writable_file(name, getattr(args, name)))
    return half, memory_from_args(args, accelerator), noise_from_args(args, accelerator)


def check_dispatched(accelerator: Accelerator) -> None:
    """OptionError unless it has a dispatcher in front of two contexts."""
    if accelerator.contexts != 2 or not accelerator.dispatch:
        raise refuse("dispatch", str(accelerator.dispatch), "must be there, in front of 2 contexts")


def prepare_colocate(args: Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    asked = arrivals_from_args(args)
    accelerator = system_from_args(args, Accelerator, contexts=2, **PLACES)
    check_dispatched(accelerator)
    points: list[Any] = [None] if args.bandwidth is None else args.bandwidth.split(",")
    args = Namespace(**vars(args) | {"bandwidth": points[0]})
    half, _, noise = given_to_both(args, accelerator, ("json", "timeline"))
    memories = [memory_from_args(Namespace(**vars(args) | {"bandwidth": each}), accelerator) for each in points]
    if len({bandwidth for _, bandwidth in memories}) < len(memories):
        raise refuse("bandwidth", ",".join(points), "must not name one twice")
    if len(memories) > 1 and args.train == "none" and args.timeline is not None:
        raise refuse("timeline", args.timeline, "must not be given for several bandwidths without a training")
    return partial(_colocate, args, asked, accelerator, half, memories, noise)


def _colocate(args, asked, accelerator, half, memories, noise):
    """Lower, step through, simulate, tell; the exit status."""
    from . import kept  # with Numba

    console = Console(highlight=False)
    bar = Bars(console)
    found = []
    with bar.progress:
        names = (os.path.realpath(each) if each.endswith(".py") else each for each in (args.serve, args.train))
        words = *names, *accelerator.words(), memories, asked["quantum"], args.epoch, noise
        arriving = {name: each for name, each in asked.items() if name != "quantum"}
        for memory, each in zip(memories, kept.shifts(words, partial(
                _stepped, args, asked, accelerator, half, memories, noise, bar)), strict=True):
            bar("simulate")
            shift = kept.shift(each, accelerator, **arriving)
            begun, processor = time.perf_counter(), time.process_time()
            what = shift.served()
            figures = what.as_dict()
            found.append((shift, what, figures | {
                "serve": args.serve, "train": args.train, "accelerator": accelerator.name, "latency": memory[0],
                "places": accelerator.dispatch, "bandwidth": memory[1], "seconds": time.perf_counter() - begun,
                "processor_seconds": time.process_time() - processor,
                "simulated": {name: figures[name] for name in ("p50", "p99", "max")}}))
    return _tell(args, console, asked, found)


def _stepped(args, asked, accelerator, half, memories, noise, bar):
    """A shift for each memory, of programs that are lowered and stepped through in the cycle model."""
    bar(f"lower {args.serve}")
    serving = served(args.serve, half)[0]

    from hbfp.golden.lower.errors import LoweringError  # with PyTorch, as the line above

    from .quanta import giving_way
    from .shift import Shift

    def lowered(where, apart=()):
        if args.train == "none":
            return None
        bar(f"lower {args.train}" + (f", {len(apart)} layers apart" if apart else ""))
        return step_of(args, *lowered_step(args.train, where, name="TRAIN", values=False, apart=apart, **noise)
                       ).lowered.program

    alone = lowered(accelerator)

    def shifts(train):
        bar("generate the core")
        latency = core_latency(accelerator.core)
        found, places = {}, None
        # From the shortest batch on, whose quanta are the shortest, too: places of one are a beginning for the next.
        for memory in sorted(memories, key=lambda each: -each[1]):
            bar("place yields" if len(memories) == 1 else f"{memory[1]} bytes a cycle")
            shift = Shift.of(serving.full, train, accelerator, latency, *memory, batch=serving.batch, alone=alone,
                             places=places, **asked)
            places, found[memory] = shift.plan.places, shift
        return [found[memory] for memory in memories]

    try:
        return giving_way(partial(lowered, half), shifts)[1]
    except LoweringError as error:
        raise refuse("quantum", args.quantum, str(error)) from None


def _tell(args, console, asked, found):
    """Print, draw, write; the exit status."""
    shift, what, data = found[0]
    points = [each for _, _, each in found]
    title = f"{args.serve} serves, {args.train} trains, load {asked['load']:g}"
    if len(found) > 1:
        from . import sweep

        data = {"points": points}
        console.print(sweep.table(points, f"{title} on {points[0]['accelerator']}, latency {points[0]['latency']} "
                                  "(cycle model); times in cycles and in batches"))
        draw = partial(sweep.draw, args.timeline, points)
    else:
        console.print(_table(data, asked))
        draw = partial(_draw, args.timeline, shift, what)
    if args.timeline is not None:
        with writing("timeline", args.timeline):
            draw(title)
        console.print(f"timeline: {args.timeline}", markup=False, soft_wrap=True)
    if args.json is not None:
        with writing("json", args.json):
            files.write_json(args.json, data)
    return 0 if not any(each["exceeded"] for each in points) else 1


def _draw(path, shift, what, title):
    """The picture of one."""
    from . import picture  # with matplotlib, which takes a while to load

    picture.draw(path, shift, what, title)


def _table(data, asked):
    """The figures as a table; cycles beside times of a batch."""
    title = (f"{data['serve']} serves, {data['train']} trains on {data['accelerator']}, latency {data['latency']}, "
             f"{data['bandwidth']} bytes a cycle (cycle model)")
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("figure", justify="right")

    def times(name):
        return f"{data[name]:,.0f} ({data[name] / data['service']:.2f} batches)"

    rows = [("requests, load", f"{data['requests']:,}, {'of a file' if asked['times'] is not None else asked['load']}"),
            ("batch: requests, cycles", f"{data['batch']:,}, {data['service']:,}"),
            ("fill of a batch", f"{100 * data['fill']:.1f} %"), ("timeout", times("timeout")),
            *((f"latency: {text}", times(name)) for name, text in (
                ("p50", "half are below"), ("p99", "99 % are below"), ("max", "longest"))),
            (f"bound with {data['places']} in the queue", times("bound")),
            ("requests above their bound", f"{data['exceeded']:,}"),
            ("came to a full queue, longest wait for a place", f"{data['refused']:,}, {times('outside')}")]
    if data.get("overdue", -1) >= 0:
        rows.append(("training was overdue, and stopped, in cycle", f"{data['overdue']:,}"))
    if "step" in data:
        rows += [("longest quantum", times("quantum")), ("later than without training, at most", times("later")),
                 ("requests that differ by more than a quantum", f"{data['beyond']:,}"),
                 ("steps of training", f"{data['steps']:,}"),
                 ("training, of what inference leaves idle", f"{data['of_idle']:.3f}"),
                 ("the same, without the cycles of changes", f"{data['of_allowed']:.3f}"),
                 ("training, of a machine that trains alone", f"{data['of_dedicated']:.3f}"),
                 *((f"array, vector unit, bus, DRAM busy, {text}",
                    ", ".join(f"{share:.0%}" for share in data[name].values()))
                   for name, text in (("limits", "a step"), ("limits_alone", "a step alone")))]
    for row in rows:
        table.add_row(*row)
    return table
