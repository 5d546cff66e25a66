"""``python -m golden``: numbers. Training in HBFP, sweeps over formats, error studies."""

if __name__ == "__main__":
    from hbfp import loading

    loading.watch("golden")    # before all that takes a while to load

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rich.console import Console
from rich.table import Table

from hbfp.command import Parser, run
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

from . import options
from .perf.command import add_dispatch, add_space, prepare_dispatch, prepare_space
from .perf.pods.command import add_pods, prepare_pods
from .perf.silicon_command import add_silicon, prepare_silicon
from .study.layers_command import add_layers, prepare_layers
from .study.tune_command import add_tune, prepare_tune

EXAMPLES = """\
examples:
  python -m golden train --task teacher --mantissa 4 --block 1,16
  python -m golden train --task digits --mantissa 3 --block 1,16 --boost 6 --seed 2
  python -m golden sweep --task teacher --seeds 5           fp32, hbfp8, 6, 4, 4 boosted, 3, 3 boosted
  python -m golden sweep --widths fp32,8,4,4+6 --scheduler tcp://host:8786
  python -m golden tune --trials 32 --mantissa 4,6,8        rates, widths and formats; models train as jobs
  python -m golden error                                    QSNR of 4, 6 and 8 bits, blocks 16 to 576
  python -m golden error --prune 2:4 --mantissa 4           pruning and quantising in both orders
  python -m golden layers --model mine.py --mantissa 4      errors of a model's operands, layer by layer
  python -m golden schedule --base 4 --boost 6              share of the arithmetic at each width
  python -m golden space --workload lstm --json space.json  throughput, power and area against latency
  python -m golden dispatch --load 0.5 --batch 14 --timeout 3 --quantum 0.05 --policy priority
  python -m golden silicon                                  area x time of training in 4 bits, boosted to 6
  python -m golden pods --network resnet50 --pods 64 --interconnect butterfly-2
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m golden", description=__doc__, epilog=EXAMPLES)
    commands = parser.add_subparsers(dest="command", required=True,
                                     metavar="train|sweep|tune|error|layers|schedule|space|dispatch|silicon|pods")
    train = commands.add_parser("train", help="one training run; continues where it was killed", epilog=EXAMPLES)
    sweep = commands.add_parser("sweep", help="many runs, several seeds: mean, deviation, curves", epilog=EXAMPLES)
    for command in (train, sweep):
        command.add_argument("--task", default="digits", help="digits or teacher (separates HBFP4 from FP32)")
        command.add_argument("--epochs", default="0", help="0: the task's recipe")
        command.add_argument("--batch", default="0", help="0: the task's recipe")
        command.add_argument("--rate", default="0", help="learning rate; 0: the task's recipe")
        command.add_argument("--wide", action="store_true", help="master weights in HBFP with 16-bit mantissas")
        command.add_argument("--out", default=str(output("golden")), help="folder of results, checkpoints and pictures")
    options.add_options(train, options.TRAINING)
    options.add_options(sweep, options.SWEEP)
    train.add_argument("--seed", default="0")
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
    add_tune(commands, EXAMPLES)
    error = commands.add_parser("error", help="signal to quantisation noise; pruning with quantisation",
                                epilog=EXAMPLES)
    error.add_argument("--distribution", default="normal", help="normal, uniform or laplace, unit variance")
    error.add_argument("--elements", default="4000000")
    error.add_argument("--prune", metavar="N:M", help="compare both orders of N:M pruning and quantisation")
    error.add_argument("--out", help="folder for error.json")
    options.add_options(error, options.FORMAT)
    add_layers(commands, EXAMPLES)
    schedule = commands.add_parser("schedule", help="share of the arithmetic at each mantissa width", epilog=EXAMPLES)
    schedule.add_argument("--base", default="4")
    schedule.add_argument("--boost", default="6")
    add_space(commands, EXAMPLES)
    add_dispatch(commands, EXAMPLES)
    add_silicon(commands, EXAMPLES)
    add_pods(commands, EXAMPLES)
    return parser


def _runs(args, design, configurations, seeds, boosts=None):
    """The :class:`~golden.study.experiment.Run` of every configuration (width or None, boost) and seed."""
    from .study.experiment import Run
    from .study.tasks import TASKS
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


def _train(args):
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

    from .study.experiment import train
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


def _sweep(args):
    seeds = range(whole("seeds", args.seeds, 1, 10_000))
    jobs = -1 if args.jobs == "-1" else whole("jobs", args.jobs, *JOBS_RANGE)
    folder = writable_folder("out", args.out)
    design = options.design(args, options.SWEEP, "on a sweep, whose --widths are its formats")
    return partial(_sweep_all, _runs(args, design, _configurations(args.widths), seeds), folder, args.task, jobs,
                   address("scheduler", args.scheduler))


def _sweep_all(runs, folder, task, jobs, scheduler):
    from .study.sweep import picture, summary, sweep
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


def _error(args):
    from .study.error import DISTRIBUTIONS
    elements = whole("elements", args.elements, 1000, 10 ** 9)
    choice("distribution", args.distribution, DISTRIBUTIONS)
    fmt = (options.design(args, ("mantissa",), "without --prune") if args.prune is None
           else options.design(args, options.FORMAT, "on pruning")).format
    folder = None if args.out is None else writable_folder("out", args.out)
    if args.prune is None:
        widths = sorted({4, 6, 8, fmt.mantissa})
        return partial(_write_error, folder, partial(_quantisation_error, args.distribution, elements, widths))
    if fmt.rounding == "stochastic":
        raise refuse("rounding", fmt.rounding, "must be rne or truncate with --prune")
    return partial(_write_error, folder, partial(_prune_error, args.distribution, elements, *_pattern(args.prune),
                                                 fmt))


def _write_error(folder, work):
    data = work(Console(highlight=False))
    if folder is not None:
        make_folder("out", folder)
        with writing("out", folder):
            write_json(folder / "error.json", data)


def _quantisation_error(distribution, elements, widths, console):
    from .study import error
    data = error.qsnr_table(widths, distribution=distribution, elements=elements)
    table = Table("format", *(f"block {b}" for b in error.QSNR_BLOCKS), title=f"QSNR in dB, {distribution}")
    for width, row in data.items():
        known = error.QSNR_REFERENCE.get(width) if distribution == "normal" else None
        table.add_row(f"HBFP{width}", *(f"{v:.2f}" + (f" ({v - known[i]:+.2f})" if known else "")
                                        for i, v in enumerate(row)))
    console.print(table)
    if distribution == "normal":
        console.print("in brackets: difference to the published measurements")
    return data


def _pattern(text):
    from .sparsity import GROUP_RANGE
    n, _, m = text.partition(":")
    try:
        m = whole("prune", m, *GROUP_RANGE)
        return whole("prune", n, 0, m), m
    except OptionError:
        raise refuse("prune", text, f"must be N:M with N at most M, M {GROUP_RANGE[0]} to {GROUP_RANGE[1]}") from None


def _prune_error(distribution, elements, n, m, fmt, console):
    from .study import error
    w = error.samples(distribution, (max(1, elements // 1024), 1024))
    first, second = (float(e.sum() / (w.astype(float) ** 2).sum()) for e in error.both_orders(w, n, m, fmt, axis=1))
    table = Table("order", "squared error / squared weights", title=f"{n}:{m} and HBFP{fmt.mantissa} {fmt.block}")
    table.add_row("sparsify, then quantise", f"{first:.6f}")
    table.add_row("quantise, then sparsify", f"{second:.6f}")
    console.print(table)
    return {"sparsify_then_quantise": first, "quantise_then_sparsify": second}


def _schedule(args):
    return partial(_shares, whole("base", args.base, *MANTISSA_RANGE), whole("boost", args.boost, *MANTISSA_RANGE))


def _shares(base, boost):
    from .schedule import MixedMantissa, linear_macs, resnet20_macs, resnet50_macs
    table = Table("network", "epochs", "last epoch alone, %", "and first and last layer, %",
                  title=f"Share of the arithmetic at {base} bits; the rest at {boost}")
    networks = [("ResNet-20, 32 x 32", resnet20_macs(), (90, 160, 330)),
                ("ResNet-50, 224 x 224", resnet50_macs(), (90, 160, 330)),
                ("task teacher, 16-128-128-10", linear_macs(16, 128, 128, 10), (25,))]
    for name, macs, lengths in networks:
        for epochs in lengths:
            shares = [MixedMantissa(base=base, boosted=boost, epochs=epochs, ends=ends).share(macs).get(base, 0)
                      for ends in (False, True)]
            table.add_row(name, str(epochs), *(f"{share * 100:.2f}" for share in shares))
    Console(highlight=False).print(table)


COMMANDS = {"train": _train, "sweep": _sweep, "tune": prepare_tune, "error": _error, "layers": prepare_layers,
            "schedule": _schedule, "space": prepare_space, "dispatch": prepare_dispatch,
            "silicon": prepare_silicon, "pods": prepare_pods}


def prepare(args: argparse.Namespace) -> Callable[[], object]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    return COMMANDS[args.command](args)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    return run(make_parser(), prepare, arguments)


if __name__ == "__main__":
    sys.exit(main())
