"""``python -m golden train`` and ``sweep``: their command lines."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from hbfp.files import output, write_json
from hbfp.format import MANTISSA_RANGE
from hbfp.values import (
    JOBS_RANGE,
    OptionError,
    address,
    choice,
    make_folder,
    number,
    refuse,
    shown,
    whole,
    writable_folder,
    writing,
)

from ..command import options
from .published import command as published


def add_train(commands: Any) -> None:
    """Add the two subcommands."""
    train = commands.add_parser("train", help="one training run; continues where it was killed")
    sweep = commands.add_parser("sweep", help="many runs, several seeds: mean, deviation, curves")
    for command in (train, sweep):
        tasks = "" if command is sweep else ", resnet20-cifar10 and others with --data, or a TOML file"
        command.add_argument("--task", default="digits", help=f"digits, teacher (separates HBFP4 from FP32){tasks}")
        command.add_argument("--epochs", default="0", help="0: the task's recipe")
        command.add_argument("--batch", default="0", help="0: the task's recipe")
        command.add_argument("--rate", default="0", help="learning rate; 0: the task's recipe")
        command.add_argument("--wide", action="store_true", help="master weights in HBFP with 16-bit mantissas")
        command.add_argument("--out", default=str(output("golden")), help="folder of results, checkpoints and pictures")
    options.add_options(train, options.TRAINING)
    options.add_options(sweep, options.SWEEP)
    published.add_options(train)
    train.add_argument("--seed", default="0", help="of weights and batches")
    train.add_argument("--boost", default="0", help="width of the last epoch and of the first and last layer; 0: none")
    train.add_argument("--last-epochs", default="1", help="boosted epochs at the end")
    train.add_argument("--intervals", default="", help="further boosted epochs, from 0: 10-12,20-22")
    train.add_argument("--ends", default="yes", help="yes or no: whether first and last layer are always boosted")
    train.add_argument("--first", default="0", help="another width of the first layer; 0: as --ends says")
    train.add_argument("--last", default="0", help="another width of the last layer; 0: as --ends says")
    sweep.add_argument("--seeds", default="5", help="runs of each configuration")
    sweep.add_argument("--widths", default="fp32,8,6,4,4+6,3,3+6", help="fp32, W, or W+BOOST, separated by commas")
    sweep.add_argument("--jobs", default="-1", help="processes; -1: one per processor")
    sweep.add_argument("--scheduler", help="address of a Dask scheduler, tcp://host:8786 (pip install 'hbfp[dask]')")


def _runs(args, design, configurations, seeds, boosts=None):
    """The :class:`~golden.study.experiment.Run` of every configuration (width or None, boost) and seed."""
    from .experiment import Run
    from .tasks import TASKS
    common = dict(task=choice("task", args.task, TASKS), epochs=whole("epochs", args.epochs, *options.EPOCHS_RANGE),
                  batch=whole("batch", args.batch, *options.BATCH_RANGE), rate=number("rate", args.rate, 0, 100),
                  accumulate=design.accumulate)
    runs = []
    for width, boost in configurations:
        if width == "given":
            fmt = design.format if design.arithmetic == "hbfp" else None
        else:
            fmt = width and replace(design.format, mantissa=width)
        for seed in seeds:
            try:
                runs.append(Run(fmt=fmt, boost=boost, seed=seed, wide=args.wide and fmt is not None, **common,
                                **(boosts or {})))
            except ValueError as error:
                raise OptionError(str(error)) from None
    return runs


def prepare_train(args: argparse.Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    from .tasks import TASKS
    if args.formats is not None or args.task not in TASKS:
        return published.prepare(args)
    for name, default in published.OWN.items():
        if getattr(args, name) != default:
            raise refuse(name, getattr(args, name), "has no effect on this task without --formats")
    seed, boost = whole("seed", args.seed, *options.SEED_RANGE), whole("boost", args.boost, 0, 16)
    folder = writable_folder("out", args.out)
    design = options.design(args, options.TRAINING, "on training")
    if design.arithmetic not in ("hbfp", "fp32"):
        raise refuse("arithmetic", design.arithmetic, "must be hbfp or fp32 for training")
    if design.arithmetic == "fp32":
        options.design(args, ("arithmetic",), "on training in FP32")
        if args.wide:
            raise OptionError("--wide: must not be given for training in FP32, whose weights are as wide as they are")
    one, = _runs(args, design, [("given", boost)], [seed], _boosts(args, boost))
    return partial(_train_one, one, folder)


def _boosts(args, boost):
    """What is boosted, as options of :class:`~golden.study.experiment.Run`."""
    given = {"last_epochs": whole("last-epochs", args.last_epochs, *options.EPOCHS_RANGE),
             "ends": choice("ends", args.ends, ("yes", "no")) == "yes",
             "first": whole("first", args.first, 0, MANTISSA_RANGE[1]),
             "last": whole("last", args.last, 0, MANTISSA_RANGE[1]), "intervals": _intervals(args.intervals)}
    plain = {"last_epochs": 1, "ends": True, "first": 0, "last": 0, "intervals": ()}
    odd = next((name for name in plain if given[name] != plain[name] and not boost), None)
    if odd:
        raise refuse(odd, getattr(args, odd), "has no effect without --boost")
    return given


def _intervals(text):
    """Pairs (first epoch, epoch after the last) of ``A-B,C-D``."""
    pairs = []
    for word in text.split(",") if text else ():
        start, dash, stop = word.partition("-")
        try:
            pairs.append((whole("intervals", start, 0, 10 ** 6), whole("intervals", stop, 0, 10 ** 6) + 1))
        except OptionError:
            raise refuse("intervals", text, "must be pairs of epochs such as 10-12,20-22") from None
    return tuple(pairs)


def _train_one(one, folder):
    from rich.progress import track

    from .experiment import train
    make_folder("out", folder / "runs")
    console = Console(highlight=False)
    bar = iter(track(range(one.epochs + 1), "training", console=console))
    state = {"at": next(bar)}

    def progress(done):
        while state["at"] < done:
            state["at"] = next(bar)
    result = train(one, folder / "runs", progress)
    next(bar, None)
    console.print(f"{result['name']}, task {one.task}, seed {one.seed}: {result['accuracy']:.2f} % of the test data "
                  f"after {one.epochs} epochs")
    if result["share"]:
        console.print("share of the HBFP arithmetic: " + ", ".join(f"{float(share) * 100:.2f} % at {width} bits"
                                                                   for width, share in result["share"].items()))
    console.print(f"parameters sha256 {result['digest'][:16]}, result {folder}/runs/{one.key}.json", soft_wrap=True)


def _configurations(text):
    (low, high), parsed = MANTISSA_RANGE, []
    for part in text.split(","):
        width, plus, boost = part.partition("+")
        if part == "fp32":
            parsed.append((None, 0))
            continue
        try:
            parsed.append((whole("widths", width, low, high),
                           whole("widths", boost, low, high) if plus else 0))
        except OptionError:
            raise refuse("widths", text, f"must be fp32, W or W+BOOST ({low} to {high}), not '{shown(part)}'") from None
    return parsed


def prepare_sweep(args: argparse.Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    seeds = range(whole("seeds", args.seeds, 1, 10_000))
    jobs = -1 if args.jobs == "-1" else whole("jobs", args.jobs, *JOBS_RANGE)
    folder = writable_folder("out", args.out)
    design = options.design(args, options.SWEEP, "on a sweep, whose --widths are its formats")
    return partial(_sweep_all, _runs(args, design, _configurations(args.widths), seeds), folder, args.task, jobs,
                   address("scheduler", args.scheduler))


def _sweep_all(runs, folder, task, jobs, scheduler):
    from .sweep import picture, summary, sweep
    make_folder("out", folder / "runs")
    console = Console(highlight=False)
    try:
        results = sweep(runs, folder / "runs", jobs=jobs, scheduler=scheduler, console=console)
    except ValueError as error:
        raise OptionError(str(error)) from None
    table = Table("format", "mean %", "deviation", "seeds", title=f"Test accuracy, task {task}")
    figures = summary(results)
    for name, (mean, deviation, count) in figures.items():
        table.add_row(name, f"{mean:.2f}", f"{deviation:.2f}", str(count))
    console.print(table)
    with writing("out", folder):
        write_json(folder / f"{task}.json", {"summary": figures, "results": results})
        picture(results, folder / f"{task}.png")
    console.print(f"results {folder}/{task}.json, curves {folder}/{task}.png", soft_wrap=True)
