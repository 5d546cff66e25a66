"""What each part of the booster recipe adds, on a transformer deep enough for it: ``python -m benchmarks.boosters``.

A character-level transformer of six layers learns a generated language at a narrow width; the last epoch, the first
layer and the last layer are boosted one by one and together. An epoch is a number of steps, so that the last one is as
small a part of the training as in the published recipe. What is boosted in the last epoch is boosted in the evaluation,
too; so a model that was trained at the narrow width alone is evaluated at both widths. The cases of a seed train as one
job. The table has the accuracy of the next character on text that was not trained on, and the share of the HBFP
arithmetic of the training that was done at the narrow width.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import golden.nn as gn
from golden.nn import fused
from golden.schedule import MixedMantissa
from golden.study import shares
from golden.study.text import CharacterTransformer, load
from hbfp import files

from .tables import add_json, write

OFF = dict(ends=False, last_epochs=0)
#: Learning rates of Adam, from the first epoch to the last.
RATES = 3e-3, 3e-5


def cases(base, boosted, epochs):
    """Name -> what is boosted in the training of an HBFP model."""
    common = dict(base=base, boosted=boosted, epochs=epochs)
    parts = {f"HBFP{base}": OFF, "last epoch": dict(ends=False), "first layer": OFF | dict(first=boosted),
             "last layer": OFF | dict(last=boosted), "first and last layer": dict(last_epochs=0),
             "last epoch, first and last layer": {}, f"HBFP{boosted}": OFF | dict(base=boosted)}
    return {name: MixedMantissa(**common | options) for name, options in parts.items()}


def make(seed, schedule, args):
    """A model and its optimiser."""
    torch.manual_seed(seed)
    net = CharacterTransformer(width=args.width)
    if schedule is not None:
        gn.convert(net, gn.HBFPFormat(mantissa=schedule.base, block=(1, args.block)), seed=1 + 1000 * seed)
    return net, torch.optim.Adam(net.parameters(), RATES[0])


def accuracies(net, x, y, count=None):
    """Share of characters that a job of ``count`` models, or one model, predicts rightly: a list, in percent."""
    options = {} if count is None else dict(shared=True)
    with torch.no_grad():
        found = torch.cat([net(part, **options).argmax(1).view(count or 1, -1) for part in x.split(64)], 1)
    return ((found == y.flatten()).double().mean(1) * 100).tolist()


def train(schedules, seed, args):
    """Accuracies in percent of models with one seed, a schedule each (None is FP32), trained as a job; and the models.
    """
    x, y, x_test, y_test = load()
    nets, optimisers = zip(*(make(seed, schedule, args) for schedule in schedules), strict=True)
    job = fused.fuse(nets)
    step, count = fused.Step(job, optimisers), len(nets)
    rates = [torch.optim.lr_scheduler.CosineAnnealingLR(one, args.epochs, RATES[1]) for one in optimisers]
    for epoch in range(args.epochs):
        for net, schedule in zip(nets, schedules, strict=True):
            if schedule is not None:
                schedule.apply(gn.hbfp_layers(net), epoch)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed * 1000 + epoch))
        for rows in order.split(args.batch)[:args.steps]:
            step.zero_grad()
            logits = job(x[rows], shared=True).transpose(1, 2).flatten(0, 1)
            fused.cross_entropy(logits, y[rows].flatten().repeat(count), count).backward()
            step()
        for rate in rates:
            rate.step()
    return accuracies(job, x_test, y_test, count), nets


def run(named, seed, args):
    """Name of each row of the table -> accuracy in percent."""
    (exact,), _ = train([None], seed, args)
    found, nets = train(list(named.values()), seed, args)
    rows = dict(zip(named, found, strict=True))
    wide = MixedMantissa(base=args.boost, boosted=args.boost)
    wide.apply(gn.hbfp_layers(nets[0]), 0)
    rows[evaluated(args)], = accuracies(nets[0], *load()[2:])
    return rows | {"FP32": exact}


def evaluated(args):
    """Name of the row of the model that is trained at the narrow width and evaluated at the other."""
    return f"HBFP{args.base}, evaluated at {args.boost} bits"


def main():
    """Train and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boosters", description=__doc__.splitlines()[0])
    for name, value, text in (("seeds", 5, "runs of each case"), ("epochs", 200, ""), ("steps", 6, "steps of an epoch"),
                              ("batch", 16, "sequences of a step"), ("width", 64, "of the model"),
                              ("block", 16, "elements that share an exponent"),
                              ("base", 4, "narrow width"), ("boost", 6, "boosted width")):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{text} (default %(default)s)".lstrip())
    parser.add_argument("--out", type=Path, default=files.output("golden", "boosters"), help="folder of results")
    add_json(parser)
    args = parser.parse_args()
    torch.set_num_threads(1)
    named = cases(args.base, args.boost, args.epochs)
    found = {}
    for seed in range(args.seeds):
        values = args.base, args.boost, args.block, args.width, args.epochs, args.steps, args.batch
        path = args.out / ("-".join(map(str, (*values, seed))) + ".csv")
        if not path.exists():                          # a seed that is done is not trained again
            files.write_csv(path, ["case", "accuracy"], [{"case": name, "accuracy": repr(accuracy)} for name, accuracy
                                                         in run(named, seed, args).items()])
        for line in path.read_text().splitlines()[1:]:
            name, _, accuracy = line.rpartition(",")
            found.setdefault(name.strip('"'), []).append(float(accuracy))
    net, _ = make(0, None, args)
    counts = shares.products(net, load()[0][:1])
    narrow, _ = make(0, MixedMantissa(), args)
    named[evaluated(args)] = named[f"HBFP{args.base}"]
    table = Table("boosted", "mean %", "deviation", f"over HBFP{args.base}", "deviation of that",
                  f"arithmetic at {args.base} bits, %",
                  title=f"Next character, {args.seeds} seeds, {args.base} bits, boosted {args.boost}")
    for name, values in found.items():
        share = shares.share_of(named[name], narrow, counts).get(args.base, 0.0) if name in named else 0.0
        over = np.subtract(values, found[f"HBFP{args.base}"])    # seed by seed
        deviations = [float(np.std(each, ddof=1)) if len(values) > 1 else 0.0 for each in (values, over)]
        table.add_row(name, f"{np.mean(values):.2f}", f"{deviations[0]:.2f}", f"{over.mean():+.2f}",
                      f"{deviations[1]:.2f}", f"{share * 100:.2f}")
    Console(width=150).print(table)
    write(args.json, table)


if __name__ == "__main__":
    main()
