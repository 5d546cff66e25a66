"""What each part of the booster recipe adds, on a transformer deep enough for it: ``python -m benchmarks.boosters``.

A character-level transformer of six layers learns a generated language at a narrow width; the last epoch, the first
layer, the last layer and intervals of epochs are boosted one by one and together. The seeds of all cases train as jobs.
The table has the accuracy of the next character on text that was not trained on, and the share of the HBFP arithmetic
that was done at the narrow width.
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

OFF = dict(ends=False, last_epochs=0)


def cases(base, boosted, epochs):
    """Name -> what is boosted; None is FP32."""
    common = dict(base=base, boosted=boosted, epochs=epochs)
    parts = {f"HBFP{base}": OFF, "last epoch": dict(ends=False), "first layer": OFF | dict(first=boosted),
             "last layer": OFF | dict(last=boosted), "first and last layer": dict(last_epochs=0),
             "last epoch, first and last layer": {}, "first and last layer at 8": OFF | dict(first=8, last=8),
             "every fourth epoch": OFF | dict(intervals=tuple((e, e + 1) for e in range(3, epochs, 4)))}
    return {"FP32": None, **{name: MixedMantissa(**common | options) for name, options in parts.items()},
            f"HBFP{boosted}": MixedMantissa(**common | OFF | dict(base=boosted))}


def make(seed, schedule):
    """A model and its optimiser."""
    torch.manual_seed(seed)
    net = CharacterTransformer()
    if schedule is not None:
        gn.convert(net, gn.HBFPFormat(mantissa=schedule.base, block=(1, 16)), seed=1 + 1000 * seed)
    return net, torch.optim.Adam(net.parameters(), 3e-3)


def train(schedules, seed, epochs, batch):
    """Accuracies in percent of models with one seed, a schedule each; HBFP models as one job."""
    x, y, x_test, y_test = load()
    nets, optimisers = zip(*(make(seed, schedule) for schedule in schedules), strict=True)
    job = fused.fuse(nets)
    step, count = fused.Step(job, optimisers), len(nets)
    rates = [torch.optim.lr_scheduler.CosineAnnealingLR(one, epochs) for one in optimisers]
    for epoch in range(epochs):
        for net, schedule in zip(nets, schedules, strict=True):
            if schedule is not None:
                schedule.apply(gn.hbfp_layers(net), epoch)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed * 1000 + epoch))
        for rows in order.split(batch):
            step.zero_grad()
            logits = job(x[rows], shared=True).transpose(1, 2).flatten(0, 1)
            fused.cross_entropy(logits, y[rows].flatten().repeat(count), count).backward()
            step()
        for rate in rates:
            rate.step()
    with torch.no_grad():
        found = torch.cat([job(part, shared=True).argmax(1).view(count, -1) for part in x_test.split(64)], 1)
    return ((found == y_test.flatten()).double().mean(1) * 100).tolist()


def main():
    """Train and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boosters", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="runs of each case (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=8, help="(default %(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="(default %(default)s)")
    parser.add_argument("--base", type=int, default=4, help="narrow width (default %(default)s)")
    parser.add_argument("--boost", type=int, default=6, help="boosted width (default %(default)s)")
    parser.add_argument("--out", type=Path, default=files.output("golden", "boosters"), help="folder of results")
    args = parser.parse_args()
    torch.set_num_threads(1)
    named = cases(args.base, args.boost, args.epochs)
    boosted = [schedule for schedule in named.values() if schedule is not None]
    found = {name: [] for name in named}
    for seed in range(args.seeds):
        path = args.out / f"{args.base}-{args.boost}-{args.epochs}-{args.batch}-{seed}.csv"
        if not path.exists():                          # a seed that is done is not trained again
            accuracies = [*train([None], seed, args.epochs, args.batch),
                          *train(boosted, seed, args.epochs, args.batch)]
            files.write_csv(path, ["case", "accuracy"], [{"case": name, "accuracy": repr(accuracy)} for name, accuracy
                                                         in zip(named, accuracies, strict=True)])
        for line in path.read_text().splitlines()[1:]:
            name, _, accuracy = line.rpartition(",")
            found[name.strip('"')].append(float(accuracy))
    net, _ = make(0, None)
    counts = shares.products(net, load()[0][:1])
    narrow, _ = make(0, MixedMantissa())
    table = Table("boosted", "mean %", "deviation", f"arithmetic at {args.base} bits, %",
                  title=f"Next character, {args.seeds} seeds, {args.base} bits, boosted {args.boost}")
    for name, schedule in named.items():
        share = 0.0 if schedule is None else shares.share_of(schedule, narrow, counts).get(args.base, 0.0)
        values = found[name]
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        table.add_row(name, f"{np.mean(values):.2f}", f"{deviation:.2f}", f"{share * 100:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
