"""``python -m golden train`` with formats by name: published tables, measured anew."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from hbfp import files
from hbfp.extras import need
from hbfp.format import HBFPFormat
from hbfp.values import (
    OptionError,
    make_folder,
    number,
    refuse,
    shown,
    whole,
    words_of,
    writable_folder,
    writing,
)

from ...command import options
from .formats import Format
from .task import METRICS, TaskError, kind_of, read
from .task import options as keys

#: What the formats' names leave open.
OPEN = tuple(name for name in options.SWEEP if name != "block")
#: Options of a training with one format, and their defaults.
SINGLE = {"boost": "0", "last_epochs": "1", "intervals": "", "ends": "yes", "first": "0", "last": "0"}
#: Options that a table has alone.
OWN = {"data": None, "model": None, "generate": False, "seeds": "1", "steps": "0", "device": "cpu", "apart": False,
       "checkpoint": "30", "tensorboard": False}

#: Options of a training, and their defaults.
TRAINED = {"epochs": "0", "rate": "0", "wide": False, "steps": "0", "seeds": "1", "apart": False, "checkpoint": "30",
           "tensorboard": False}


def add_options(train: argparse.ArgumentParser) -> None:
    """Add what a table has beside the options of a training."""
    group = train.add_argument_group("tables", "Tasks with formats by name: docs/experiments.md.")
    group.add_argument("--formats", help="such as fp32,hbfp8_576,hbfp4_64+6; without it those of the task's table")
    group.add_argument("--data", metavar="FOLDER", help="where the task's data are; nothing is downloaded")
    group.add_argument("--model", metavar="FOLDER", help="where the model is, for tasks of transformers")
    group.add_argument("--generate", action="store_true", help="only write a few generated data and a model")
    group.add_argument("--seeds", default="1", help="runs of each format, from --seed on")
    group.add_argument("--steps", default="0", help="steps of a training; 0: all epochs")
    group.add_argument("--device", default="cpu", help="cpu or cuda")
    group.add_argument("--apart", action="store_true", help="seeds one by one, even where they could be one job")
    group.add_argument("--checkpoint", default="30", help="seconds between checkpoints; 0: one after each step")
    group.add_argument("--tensorboard", action="store_true", help="curves for TensorBoard, too")


def prepare(args: argparse.Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    from ..devices import device
    task = read(args.task)
    if not task.recipe:
        for name, default in TRAINED.items():
            if getattr(args, name) != default:
                raise refuse(name, getattr(args, name), f"has no effect on task {task.name}, which trains nothing")
    for name, default in SINGLE.items():
        if getattr(args, name) != default:
            raise refuse(name, getattr(args, name), "has no effect on formats by name; hbfp4_64+6 is boosted")
    design = options.design(args, OPEN, "on formats by name")
    task = replace(task, epochs=whole("epochs", args.epochs, *options.EPOCHS_RANGE) or task.epochs,
                   batch=whole("batch", args.batch, *options.BATCH_RANGE) or task.batch)
    rate = number("rate", args.rate, 0, 100)
    if rate and task.recipe:
        task = replace(task, recipe=replace(task.recipe, rate=rate))
    asked = task.formats if args.formats is None else words_of("formats", args.formats)
    formats = {name: _format(name, design) for name in dict.fromkeys((*task.formats, *asked))}
    first = whole("seed", args.seed, *options.SEED_RANGE)
    seeds = range(first, first + whole("seeds", args.seeds, 1, 10_000))
    given = {"steps": whole("steps", args.steps, 0, 10 ** 9), "every": number("checkpoint", args.checkpoint, 0, 86_400),
             "wide": args.wide, "apart": args.apart, "tensorboard": args.tensorboard,
             "accumulate": design.accumulate, "device": device(args.device),
             "model": Path(args.model) if args.model else None}
    folder = writable_folder("out", args.out)
    if args.tensorboard:
        need("tensorboard")
    try:
        data = _data(args, task)
    except TaskError as error:
        raise refuse("task", args.task, str(error)) from None
    if args.generate:
        return data
    return partial(_run, task, formats, asked, seeds, data, folder, given)


def _format(name, design):
    """A format by name, with the options that the name leaves open."""
    try:
        found = Format.of(name)
        if not isinstance(found.fmt, HBFPFormat):
            return found, found.fmt
        fmt = replace(design.format, mantissa=found.fmt.mantissa, block=found.fmt.block)
        if found.boost and found.boost < fmt.mantissa:
            raise ValueError(f"boost must be {fmt.mantissa} bits or more, not {found.boost}")
        return found, fmt
    except ValueError as error:
        raise refuse("formats", name, str(error)) from None


def _data(args, task):
    """What loads the data; or what generates them, where that is asked for."""
    from .data import lacking, load, loader
    from .folders import lacking as lacks_model
    from .generate import GENERATORS
    from .models import HELD, MODELS
    found, given = loader(task.data)
    build = kind_of("model", task.model, MODELS | HELD)
    needs = {"data": bool(found.files(**given)), "model": task.model["kind"] in HELD}
    keys(build, task.model, "model.")
    for name, needed in needs.items():
        if getattr(args, name) is not None and not needed:
            raise refuse(name, getattr(args, name), f"has no effect on task {task.name}, which needs no such folder")
    if args.generate and not needs["data"]:
        raise OptionError(f"--generate: has no effect on task {task.name}, which needs no folder")
    what = {"data": ", ".join(found.files(**given)), "model": "config.json, weights and what prepares the data"}
    for name in (name for name, needed in needs.items() if needed and getattr(args, name) is None):
        raise OptionError(f"--{name}: must be a folder with {what[name]} for task {task.name}; nothing is downloaded, "
                          "--generate writes a few that try it")
    folder, models = Path(args.data or ""), Path(args.model) if args.model else None
    if args.generate:
        for name in (name for name, needed in needs.items() if needed):
            writable_folder(name, getattr(args, name))
        return partial(_generate, GENERATORS[task.data["kind"]], task, folder, models, given)
    for name, missing in (("data", lacking(task.data, folder)), ("model", lacks_model(models) if models else [])):
        if missing:
            raise refuse(name, getattr(args, name), f"lacks {', '.join(missing)}")
    if models:
        need("transformers", *["datasets"] * (task.data["kind"] == "sentences"))
    return partial(load, task.data, folder, models)


def _generate(generator, task, folder, models, given):
    with writing("data", folder):
        if models:
            generator(folder, models, task.name, **given)
        else:
            generator(folder, **given)
    print(f"generated data in {folder}" + f", a model in {models}" * bool(models))


def _run(task, formats, asked, seeds, data, folder, given):
    from . import results
    from .folders import digest
    from .job import Work
    make_folder("out", folder / "runs")
    console = Console(highlight=False)
    try:
        data = data()
        console.print(f"{task.title}: {data.note}", soft_wrap=True)
        known, model = data.digest(), digest(given["model"]) if given["model"] else ""
        works = {name: Work(task=task, format=format, fmt=fmt, accumulate=given["accumulate"], wide=given["wide"],
                            steps=given["steps"], device=given["device"], data=known, model=model)
                 for name, (format, fmt) in formats.items()}
        with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                      TextColumn("{task.fields[loss]}"), TimeElapsedColumn(), TimeRemainingColumn(),
                      console=console) as bar:
            for name in asked:
                _train(works[name], data, seeds, folder, given, bar)
    except (TaskError, ValueError) as error:
        raise OptionError(str(error)) from None
    found = {name: [each for seed in seeds if (each := results.load(_place(folder, work, seed)))]
             for name, work in works.items()}
    with writing("out", folder):
        results.write(task, found, data.note, folder)
    _show(console, task, results.rows(task, found), folder)


def _place(folder, work, seed):
    """Where the result of a seed lies."""
    return folder / "runs" / f"{work.key(seed)}.json"


def _train(work, data, seeds, folder, given, bar):
    """Train the seeds that have no result yet; write their results, and what the layers of the first are."""
    from .job import Job
    left = [seed for seed in seeds if not _place(folder, work, seed).exists()]
    together = work.task.together and not given["apart"]
    for some in [left] * bool(left) if together else [[seed] for seed in left]:
        line = bar.add_task(f"{work.format.name}, seed {', '.join(map(str, some))}", total=None, loss="")
        job = Job(work, data, some, given["model"])
        try:
            found = job.run(folder / "runs", given["every"], partial(_advance, bar, line))
        except RuntimeError as error:
            if job.step:
                raise
            text = next(iter(str(error).splitlines()), "")
            raise TaskError(f"the model of {work.task.name} does not run on its data: {shown(text, 300)}") from error
        for seed, result in zip(some, found, strict=True):
            files.write_json(_place(folder, work, seed), result)
            if given["tensorboard"]:
                _events(result, folder / "tensorboard" / f"{work.key(seed)}")
        files.write(folder / "layers" / f"{work.key(some[0])}.txt",
                    "\n\n".join(str(each) for each in job.layers() if each is not None) + "\n")
        job.checkpoint.unlink(missing_ok=True)


def _advance(bar, line, job):
    losses = job.losses / max(1, job.counted)
    bar.update(line, total=max(1, job.total), completed=job.step,
               loss=f"loss {float(losses.mean()):.3f}" if job.counted else "")


def _events(result, folder):
    """The curve of a result as events of TensorBoard."""
    from torch.utils.tensorboard import SummaryWriter
    with SummaryWriter(str(folder)) as writer:
        for point in result["curve"]:
            for name, value in point.items():
                if name not in ("step", "epoch"):
                    writer.add_scalar(name, value, point["step"])


def _show(console, task, rows, folder):
    from .results import cells
    unit, words = METRICS[task.metric]
    table = Table("format", f"{words}{', ' * bool(unit)}{unit}", "seeds", "published", title=task.title)
    for row in rows:
        table.add_row(*cells(row))
    console.print(table)
    if task.source:
        console.print(f"published: {task.source}", soft_wrap=True)
    pictures = f", curves {folder}/{task.name}.csv and .png" if task.recipe else ""
    console.print(f"results {folder}/{task.name}.json{pictures}, layers {folder}/layers", soft_wrap=True)
