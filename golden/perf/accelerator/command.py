"""``python -m golden perf``: the table by layer of a network on the accelerator, from the cycle model alone."""

import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import asdict
from functools import partial
from typing import Any

from rich.console import Console

from hbfp import files
from hbfp.golden.command.progress import Bars
from hbfp.golden.lower.command import add_exclude, check_exclude, lowered, traffic
from hbfp.golden.lower.names import zoo_text
from hbfp.manifest import core_latency
from hbfp.options import add_system_options, system_from_args
from hbfp.system import Accelerator
from hbfp.values import OptionError, readable_file, refuse, shown, whole, writable_file, writing

#: Of the DRAM: cycles, and bytes a cycle.
LATENCY_RANGE, BANDWIDTH_RANGE = (1, 100_000), (1, 4096)
#: Cycles to the first beat, if nothing else is asked for.
LATENCY = "32"
#: Roles of what a training may round stochastically.
ROLES = ("x", "w", "g")


def add_perf(commands: Any) -> None:
    """Add the parser of ``perf``."""
    perf = commands.add_parser("perf", help="cycles of a network on the accelerator, layer by layer",
                               description=f"Cycles of a network on the accelerator, layer by layer.\n\n{zoo_text()}")
    perf.add_argument("model", metavar="MODEL", help="FILE.py with model(), one or a list, and inputs(); or a name of "
                      "the zoo, above")
    add_system_options(perf, Accelerator, "accelerator")
    add_memory_options(perf)
    add_outputs(perf)
    add_exclude(perf)
    perf.add_argument("--train", action="store_true", help="a step of training: FILE.py also defines loss(), batches() "
                      "and optimiser(), as for python -m cosim train; or resnet50, bert-base or bert-layer (one of its "
                      "layers), with the size of the batch behind a colon, as resnet50:4, else 32 images or 8 "
                      "sentences")
    perf.add_argument("--epoch", default="0", metavar="N", help="with --train, where mantissas() of FILE.py gives "
                      "layers other widths from epoch to epoch: of which epoch, counted from 0 (default 0)")
    add_noise_options(perf)
    perf.add_argument("--area", metavar="FILE", help="what python -m synth accelerator --json FILE wrote: also print "
                      "throughput by area, and an estimate of the energy")
    perf.add_argument("--constants", metavar="FILE", help="a TOML file with constants that replace those of the "
                      "estimate")


def add_memory_options(parser: Any, several: str = "") -> None:
    """Add the options of the DRAM; ``several``: what is said where they take more than one bandwidth."""
    parser.add_argument("--latency", default=LATENCY, metavar="N",
                        help=f"cycles from the address of a read to its first beat, 1 to 100000 (default {LATENCY})")
    parser.add_argument("--bandwidth", metavar="N", help="bytes a cycle that reads and writes of DRAM share, 1 to 4096"
                        f"{several} (default: a beat)")


def add_outputs(parser: Any) -> None:
    """Add the options of what is written beside the table."""
    for name, text in (("json", "also write the results there"),
                       ("timeline", "draw how busy the units are, as PNG"),
                       ("trace", "write a trace for Perfetto or chrome://tracing")):
        parser.add_argument(f"--{name}", metavar="FILE", help=text)


def memory_from_args(args: Namespace, accelerator: Accelerator) -> tuple[int, int]:
    """Latency and bandwidth of the DRAM; OptionError if one is out of range."""
    latency = whole("latency", args.latency, *LATENCY_RANGE)
    bandwidth = None if args.bandwidth is None else whole("bandwidth", args.bandwidth, *BANDWIDTH_RANGE)
    return latency, bandwidth or accelerator.beat


def check_outputs(args: Namespace) -> None:
    """OptionError unless what is asked for can be written."""
    for name in ("json", "timeline", "trace"):
        if getattr(args, name) is not None:
            setattr(args, name, writable_file(name, getattr(args, name)))


def add_noise_options(group: Any, seed: bool = True) -> None:
    """The options that say what a training rounds stochastically; ``seed``: that of its numbers, too."""
    group.add_argument("--stochastic", metavar="ROLES", help="what is rounded stochastically, with --rounding "
                       "stochastic: of x, w and g (inputs, weights, gradients of outputs), commas between, or none "
                       "(default g)")
    if seed:
        group.add_argument("--seed", default="1", metavar="N", help="of the numbers that this draws (default 1)")


def noise_from_args(args: Namespace, accelerator: Accelerator) -> dict[str, Any]:
    """What :func:`lowered_step` takes of :func:`add_noise_options`; OptionError if a value is not valid."""
    seed, asked = whole("seed", args.seed, 0, 2 ** 32 - 1), args.stochastic
    if asked is None:
        asked = "g" if accelerator.stochastic else "none"
    roles = () if asked == "none" else tuple(dict.fromkeys(asked.split(",")))
    if not set(roles) <= set(ROLES):
        raise OptionError(f"--stochastic must be none, or of x, w and g, commas between, not {shown(asked)}")
    if roles and not accelerator.stochastic:
        raise OptionError(f"--stochastic {asked} must be none without --rounding stochastic, with which the "
                          "accelerator would have it")
    return {"stochastic": roles, "seed": seed}


def lowered_step(text: str, accelerator: Accelerator, name: str = "MODEL", values: bool = True,
                 apart: Collection[str] = (), layers: bool = False, **noise: Any) -> tuple[Any, Any]:
    """The training of a file or a name, and its step as a program, or as several; OptionError if it cannot be one.

    ``name`` is the option that gave it, ``values`` and ``apart`` as of :func:`~golden.lower.training.step.lower_step`
    (of a job all are apart), ``layers`` as of :func:`~golden.lower.training.job.lower_job_step`, ``noise`` is of
    :func:`noise_from_args`.
    """
    from hbfp.golden.lower.training.job import lower_job_step  # with PyTorch
    from hbfp.golden.lower.training.mixed import lower_mixed
    from hbfp.golden.lower.training.step import lower_step
    from hbfp.golden.lower.training.zoo import training

    try:
        made = training(text)
        options = {"clip": made.clip, "anew": made.anew, "values": values, **noise}
        if isinstance(made.model, list):
            if made.mixed is not None:
                raise ValueError("mantissas() must not be given with a job: its models have one width each")
            each = range(len(made.model))
            return made, lower_job_step(
                made.model, made.loss, [partial(_numbered, made.optimiser, number) for number in each],
                next(made.batches()), accelerator, plans=None if made.plan is None else [made.plan for _ in each],
                shared=made.shared, layers=layers, **options)
        given = made.model, made.loss, made.optimiser, next(made.batches()), accelerator
        options["apart"] = apart
        return made, (lower_step(*given, plan=made.plan, **options) if made.mixed is None else
                      lower_mixed(*given, made.mixed, made.epoch, plan=made.plan, **options))
    except OptionError:
        raise
    except ValueError as error:
        raise refuse(name, text, str(error)) from None


def _numbered(optimiser, number, parameters):
    """The optimiser of a model of a job."""
    return optimiser(parameters, number)


def write_files(args: Namespace, program: Any, times: Any, title: str) -> list[tuple[str, Any]]:
    """Write the program, where a command has that option, the timeline and the trace, if asked for.

    ``times`` is None for a run without cycles: then there is the program alone. Returns pairs of name and path.
    """
    made = []
    if getattr(args, "program", None) is not None:
        with writing("program", args.program):
            program.save(args.program)
        made.append(("program", args.program))
    if times is None:
        return made
    if args.timeline is not None:
        from . import timeline  # with matplotlib

        with writing("timeline", args.timeline):
            made.append(("timeline", timeline.draw(args.timeline, program, times, title)))
    if args.trace is not None:
        from . import chrome

        with writing("trace", args.trace):
            made.append(("trace", chrome.write(args.trace, program, times)))
    return made


def prepare_perf(args: Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    accelerator = system_from_args(args, Accelerator)
    memory = memory_from_args(args, accelerator)
    check_outputs(args)
    check_exclude(args, ("timeline", "trace", "train", "area"))
    if args.constants is not None and args.area is None:
        raise refuse("constants", args.constants, "needs --area FILE")
    return partial(_perf, args, accelerator, memory, _estimate(args, accelerator), noise_from_args(args, accelerator))


def _estimate(args, accelerator):
    """What the estimate is made of: (area, constants, their sources); None without an area."""
    if args.area is None:
        return None
    from .area import read_area
    from .energy import constants_for

    area = read_area(args.area, accelerator)
    path = None if args.constants is None else readable_file("constants", args.constants)
    try:
        return area, *constants_for(accelerator.core, area.array / (accelerator.core.rows * accelerator.lanes),
                                    path, area.recipe)
    except ValueError as error:
        raise error if isinstance(error, OptionError) else OptionError(f"--constants {error}") from None


def _perf(args, accelerator, memory, estimate, noise):
    """Lower, step through, tell."""
    console, core = Console(highlight=False), accelerator.core
    bar = Bars(console)
    with bar.progress:
        bar(f"lower {args.model}")
        begun = time.process_time()
        made = (_of_epoch(args, *lowered_step(args.model, accelerator, values=False, **noise)) if args.train else
                lowered(args.model, accelerator, exclude=args.exclude))
        programs, lowering = made.programs, time.process_time() - begun

        from .layers import busy, by_layer, by_part, table
        from .model import times  # with Numba

        bar("generate the core")
        latency = core_latency(core)
        bar(f"{sum(len(program.instructions) for program in programs):,} instructions")
        begun, processor = time.perf_counter(), time.process_time()
        several = [(program, times(program, latency, *memory)) for program in programs]
        seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    size, macs = core.rows * accelerator.lanes, sum(layer.macs for program in programs for layer in program.layers)
    rows = [row for program, found in several for row in by_layer(program, found)]
    cycles = sum(found.cycles for _, found in several)
    parts: dict[str, Any] = {}
    if args.train:
        from . import shares

        (program, found), = several
        parts = {"parts": by_part(rows, size), "shares": shares.shares(program, made.kinds, found)}
    title = f"{args.model} on {accelerator.name}, latency {memory[0]}, {memory[1]} bytes a cycle (cycle model)"
    console.print(table(parts.get("parts", rows), cycles, size, title))
    if args.train:
        console.print(shares.table(parts["shares"], cycles))
    extra = _estimated(console, programs[0], rows, estimate) if estimate else {}
    if args.exclude:
        written, read = (sum(each) for each in zip(*(part.moved() for part in made.parts), strict=True))
        extra = {"hosts": made.hosts, "read": read, "written": written}
        console.print(traffic(**extra), markup=False, soft_wrap=True)
    for name, path in write_files(args, *several[0], title) if programs else ():
        console.print(f"{name + ':':<10}{path}", markup=False, soft_wrap=True)
    if args.json is not None:
        for row in rows:
            row["model_cycles"] = row["cycles"]
        data = {"model": args.model, "accelerator": accelerator.name, "latency": memory[0], "bandwidth": memory[1],
                "cycles": cycles, "model_cycles": cycles, "macs": macs,
                "utilisation": macs / (size * max(cycles, 1)),
                "scale_sim": sum(row.get("scale_sim", 0) for row in rows),
                "bytes": sum(row["bytes"] for row in rows), "layers": rows,
                "busy": dict(sum((Counter(busy(*each)) for each in several), Counter())),
                "seconds": seconds, "processor_seconds": processor,
                "lowering_seconds": lowering} | parts | extra
        with writing("json", args.json):
            files.write_json(args.json, data)


def _of_epoch(args, made, step):
    """The lowered step of the epoch that is asked for."""
    most = 0 if made.mixed is None else made.mixed.epochs - 1
    epoch = whole("epoch", args.epoch, 0, most)
    return step.at(epoch * step.batches if epoch else 0).lowered


def _estimated(console, program, rows, estimate):
    """Print throughput by area and the energy; add them to the rows; what the JSON has of the whole."""
    from ..prices import as_dict
    from . import accesses, energy

    area, constants, sources = estimate
    mm2 = area.total * constants.nand2_um2 * 1e-6
    whole = energy.add(rows, accesses.by_layer(program), program.accelerator, mm2, constants)
    console.print(energy.table(rows, whole, mm2, constants, sources["mac_pj"]))
    return {"area": asdict(area) | {"total": area.total, "mm2": mm2}, "estimate": whole,
            "constants": as_dict(constants, sources)}
