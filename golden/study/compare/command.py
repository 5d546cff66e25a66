"""``python -m golden compare``: its command line."""

import argparse
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from hbfp.files import output, write_json
from hbfp.values import (
    JOBS_RANGE,
    OptionError,
    address,
    make_folder,
    readable_file,
    refuse,
    whole,
    words_of,
    writable_folder,
    writing,
)

from ...command import options

#: What is compared if nobody says.
FORMATS = "fp32,bf16,hbfp8,hbfp6,hbfp4,mxfp8,mxfp6,mxfp4,int8"


def add_compare(commands: Any) -> None:
    """Add the subcommand."""
    compare = commands.add_parser("compare", help="a model of yours in several number formats, side by side")
    compare.add_argument("model", help="Python file with model(), and loss(), batches() and optimiser() to be trained, "
                                       "metric() or inputs() to be judged; or a folder of a pretrained model in "
                                       "Hugging Face's layout, with --data")
    compare.add_argument("--data", help="of a folder's model: a file of text, or a folder of images by class")
    compare.add_argument("--calibration", help="another of the same kind, on which scales of -static are fixed")
    compare.add_argument("--formats", default=FORMATS, help="names, separated by commas: docs/formats.md")
    compare.add_argument("--seeds", default="3", help="runs of each format")
    compare.add_argument("--epochs", default="1", help="passes over the batches")
    compare.add_argument("--post", action="store_true",
                         help="train in FP32 alone; formats take its weights as they are")
    compare.add_argument("--checkpoint", help="file of a state_dict, whose weights formats take as they are")
    compare.add_argument("--device", default="cpu", help="cpu or cuda")
    compare.add_argument("--jobs", default="-1", help="processes; -1: one per processor")
    compare.add_argument("--scheduler", help="address of a Dask scheduler, tcp://host:8786 (pip install 'hbfp[dask]')")
    compare.add_argument("--out", default=str(output("golden", "compare")), help="folder of results and pictures")
    compare.add_argument("--json", help="file of the results; by default in the folder")


def prepare_compare(args: argparse.Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    seeds = whole("seeds", args.seeds, 1, 10_000)
    epochs = whole("epochs", args.epochs, 1, options.EPOCHS_RANGE[1])
    jobs = -1 if args.jobs == "-1" else whole("jobs", args.jobs, *JOBS_RANGE)
    checkpoint = "" if args.checkpoint is None else readable_file("checkpoint", args.checkpoint)
    model = args.model if Path(args.model).is_dir() else readable_file("model", args.model)
    if Path(model).is_dir() != (args.data is not None):
        raise refuse("data", args.data or "none", "must be given with a folder's model, and with no other")
    if args.calibration and not args.data:
        raise refuse("calibration", args.calibration, "must be given with a folder's model, and with no other")
    data, calibration = (str(Path(path).resolve()) if path else "" for path in (args.data, args.calibration))
    scheduler = address("scheduler", args.scheduler)
    folder = writable_folder("out", args.out)
    names = words_of("formats", args.formats)
    from ..devices import device
    from .choice import Choice
    from .runs import Work, digest
    from .user import User
    try:
        choices = [Choice.of(name) for name in names]
        user = User.read(str(model), data, calibration)
    except ValueError as error:
        raise OptionError(str(error)) from None
    if len({name.lower() for name in names}) < len(names):
        raise refuse("formats", args.formats, "must name each format once")
    post = args.post or bool(checkpoint)
    if args.post and not user.trains and not checkpoint:
        raise refuse("post", args.model, "must define loss(), batches() and optimiser(), or come with --checkpoint")
    if not user.trains:
        post = True
    _check(choices, post, user)
    files = [str(path) for path in (model, checkpoint, data, calibration) if path]
    work = Work(text=str(Path(model).resolve()), digest=digest(*files),
                seeds=tuple(range(seeds if user.trains and not checkpoint else 1)), data=data, epochs=epochs, post=post,
                calibration=calibration, checkpoint=str(Path(checkpoint).resolve()) if checkpoint else "",
                device=device(args.device))
    return partial(_compare, work, user, names, folder, jobs, scheduler, args.json)


def _check(choices, post, user):
    """Refuse what a training, or a judgement of learned weights, cannot do."""
    for choice in choices:
        if post and choice.boosted:
            raise OptionError(f"format {choice.name}: a boost is of epochs, and nothing is trained in it")
        if choice.reach and not post:
            raise OptionError(f"format {choice.name}: scales are fixed of what FP32 has learned, with --post")
        if choice.reach and not user.calibrates:
            raise OptionError(f"format {choice.name}: scales are fixed by batches, of calibration() of the file or of "
                              "--calibration")
        if choice.sparsity and not post and (choice.formats is None or choice.formats.mode != "hbfp"
                                             or choice.sparsity.endswith("%")):
            raise OptionError(f"format {choice.name}: training keeps N:M alone, and with HBFP alone; "
                              "--post prunes what FP32 has learned")


def _compare(work, user, names, folder, jobs, scheduler, target):
    from . import report
    make_folder("out", folder / "runs")
    console = Console(highlight=False)
    try:
        results = _results(work, user, names, folder / "runs", jobs, scheduler, console)
        found = report.rows(results, work.post)
    except ValueError as error:
        raise OptionError(str(error)) from None
    console.print(report.table(user, found, len(work.seeds)))
    name = Path(work.text).stem
    with writing("out", folder):
        report.picture(user, found, folder / f"{name}.png")
    path = Path(target) if target else folder / f"{name}.json"
    with writing("json", path):
        write_json(path, {"model": Path(work.text).name, "metric": user.title, "higher": user.higher,
                          "seeds": len(work.seeds), "epochs": work.epochs, "post": work.post, "formats": found})
    console.print(f"results {path}, picture {folder}/{name}.png", soft_wrap=True)


def _results(work, user, names: Sequence[str], folder, jobs, scheduler, console):
    """The results of all formats, in order; with ``post`` FP32 learns first."""
    import joblib

    from ...command.workers import dask_workers
    from ..sweep import bar
    from .runs import run
    folder, first = folder.resolve(), {}
    with dask_workers(scheduler) if scheduler else nullcontext(), bar(console, len(names), "formats") as advance:
        if work.post and not work.checkpoint and user.trains:
            first["fp32"] = run(work, "fp32", folder)
        found = []
        left = [name for name in names if name not in first]
        for result in joblib.Parallel(jobs, return_as="generator")(joblib.delayed(run)(work, name, folder)
                                                                   for name in left):
            found.append(result)
            advance()
    by_name = first | {result["name"]: result for result in found}
    return [by_name[name] for name in names]
