"""Models trained as one job against the same models one by one: ``python -m benchmarks.fused``.

Eight models, a batch of 32 each: forward pass, backward pass and optimiser. The serial models and the job take turns,
--steps steps each time; a figure is the shortest of --repeat turns for each side, in processor time on one thread. The
job is also trained for --check steps and compared with the serial models bit for bit. HFTA is timed beside it if it can
be imported (``PYTHONPATH=/path/to/hfta``).
"""

import argparse
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import golden.nn as gn
from golden.fast import kernels
from golden.nn import fused
from hbfp import files

from . import hfta_jobs

COUNT, BATCH = 8, 32
FORMAT = gn.HBFPFormat(mantissa=8, block=(1, 16))


def mlp():
    """The digits MLP, 64-128-64-10."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def cnn():
    """Two convolutions on 8 x 8 images."""
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(32, 10))


class Transformer(nn.Module):
    """One encoder layer on the 8 rows of an image."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.layer(self.embed(x)).mean(1))


SGD, ADAM = (torch.optim.SGD, dict(lr=0.01, momentum=0.9)), (torch.optim.Adam, dict(lr=0.001))
#: Name -> network, shape of a sample, optimiser with its options, least ratios asked: to serial HBFP, to serial FP32.
CASES = {"MLP, SGD": ("mlp", mlp, (64,), SGD, (4, 2)), "MLP, Adam": ("mlp", mlp, (64,), ADAM, (4, None)),
         "CNN, SGD": ("cnn", cnn, (1, 8, 8), SGD, (2, None)), "CNN, Adam": ("cnn", cnn, (1, 8, 8), ADAM, (2, None)),
         "transformer, SGD": ("transformer", Transformer, (8, 8), SGD, (2, None)),
         "transformer, Adam": ("transformer", Transformer, (8, 8), ADAM, (2, None))}


def models(build, fmt, count=COUNT):
    """Models, each from its own start."""
    made = []
    for index in range(count):
        torch.manual_seed(index)
        made.append(build() if fmt is None else gn.convert(build(), fmt, seed=100 * index))
    return made


def serial(nets, x, targets, optimiser, options):
    """A callable that makes one step of each model, one after the other."""
    own = [optimiser(net.parameters(), **options) for net in nets]

    def run():
        for net, one, a, b in zip(nets, own, x.chunk(len(nets)), targets.chunk(len(nets)), strict=True):
            one.zero_grad()
            nn.functional.cross_entropy(net(a), b).backward()
            one.step()
    return run


def together(nets, x, targets, optimiser, options):
    """A callable that makes one step of all models as a job."""
    job = fused.fuse(nets)
    step = fused.Step(job, [optimiser(net.parameters(), **options) for net in nets])

    def run():
        step.zero_grad()
        fused.cross_entropy(job(x), targets, COUNT).backward()
        step()
    return run


def same_bits(case, fmt, steps):
    """Whether ``steps`` steps of the job leave the bits of the serial models."""
    _, build, shape, (optimiser, options), _ = CASES[case]
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(COUNT * BATCH, *shape, generator=generator)
    targets = torch.randint(10, (len(x),), generator=generator)
    sides = [models(build, fmt) for _ in range(2)]
    for nets, make in zip(sides, (serial, together), strict=True):
        run = make(nets, x, targets, optimiser, options)
        for _ in range(steps):
            run()
    return all(torch.equal(a, b) for one, other in zip(*sides, strict=True)
               for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def times(calls, steps, repeat):
    """Shortest time of one step of each call in ms; the calls take turns of ``steps`` steps."""
    found = [float("inf")] * len(calls)
    for turn in range(repeat + 1):
        for i, call in enumerate(calls):
            start = time.process_time()
            for _ in range(steps):
                call()
            if turn:
                found[i] = min(found[i], (time.process_time() - start) / steps * 1e3)
    return found


def measure(case, steps, repeat):
    """Milliseconds of each side, by name."""
    name, build, shape, (optimiser, options), _ = CASES[case]
    x, targets = torch.randn(COUNT * BATCH, *shape), torch.randint(10, (COUNT * BATCH,))
    sides = {}
    for kind, fmt in (("HBFP", FORMAT), ("FP32", None)):
        sides[f"serial {kind}"] = serial(models(build, fmt), x, targets, optimiser, options)
        sides[f"job {kind}"] = together(models(build, fmt), x, targets, optimiser, options)
    other = hfta_jobs.step(name, COUNT, x, targets, optimiser, options)
    if other:
        sides["hfta"] = other
    return dict(zip(sides, times(list(sides.values()), steps, repeat), strict=True))


def main():
    """Check, time and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fused", description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=[], help=f"of {', '.join(CASES)}; all by default")
    parser.add_argument("--steps", type=int, default=10, help="steps of a turn (default %(default)s)")
    parser.add_argument("--repeat", type=int, default=20, help="turns (default %(default)s)")
    parser.add_argument("--check", type=int, default=100, help="steps compared bit for bit (default %(default)s)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    args = parser.parse_args()
    torch.set_num_threads(1)
    kernels.set_threads(1)
    table = Table("job of 8", "serial HBFP8", "job", "serial / job", "asked", "serial FP32", "FP32 / HBFP8 job",
                  "asked", "FP32 job", "FP32 / FP32 job", "FP32 / HFTA", "FP32 job / HFTA", "HBFP8 job / HFTA",
                  "bits equal", title="ms for a step of all eight models")
    figures = {}
    for case in args.cases or CASES:
        found = measure(case, args.steps, args.repeat)
        equal = all(same_bits(case, fmt, args.check) for fmt in (FORMAT, None))
        slow, quick, plain, joint = (found[key] for key in ("serial HBFP", "job HBFP", "serial FP32", "job FP32"))
        asked = ["" if least is None else str(least) for least in CASES[case][-1]]
        hfta = [f"{own / found['hfta']:.2f}" if "hfta" in found else "not measured" for own in (plain, joint, quick)]
        table.add_row(case, f"{slow:.2f}", f"{quick:.2f}", f"{slow / quick:.2f}", asked[0], f"{plain:.2f}",
                      f"{plain / quick:.2f}", asked[1], f"{joint:.2f}", f"{plain / joint:.2f}", *hfta, str(equal))
        figures[case] = found | {"equal": equal}
    Console(width=180).print(table)
    if args.json:
        files.write_json(args.json, figures)


if __name__ == "__main__":
    main()
