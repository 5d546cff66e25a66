"""The models that HFTA was published with, as jobs: ``python -m benchmarks.fused_published``.

Horizontally fused training arrays (MLSys 2021) were shown on PointNet, for classes and for points, DCGAN, ResNet-18,
MobileNet-v3, a transformer and BERT. Small ones of each kind train in HBFP8: --count models one by one and as one job,
forward pass, backward pass and SGD; all numbers are compared, and a figure is the shortest of --repeat turns of each
side, in processor time on one thread.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import golden.nn as gn
from golden.fast import kernels
from golden.nn import fused
from golden.vision import torchvision
from hbfp import files

from .fused import models, serial, times

FORMAT, CLASSES, SGD = gn.HBFPFormat(mantissa=8, block=(1, 16)), 10, {"lr": 0.01, "momentum": 0.9}


class PointNet(nn.Module):
    """Points (N, 3, points) -> classes (N, CLASSES), or of each point (N, CLASSES, points)."""

    def __init__(self, points: bool) -> None:
        super().__init__()
        self.points = points
        self.each = nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 64, 1),
                                  nn.BatchNorm1d(64), nn.ReLU())
        self.head = nn.Sequential(nn.Conv1d(128, 32, 1), nn.ReLU(), nn.Conv1d(32, CLASSES, 1)) if points else \
            nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, CLASSES))

    def forward(self, x):
        own = self.each(x)
        whole = own.amax(2)
        if not self.points:
            return self.head(whole)
        return self.head(torch.cat((own, whole[:, :, None].expand_as(own)), 1))


class Bert(nn.Module):
    """Words (N, L) -> classes: embeddings, encoder layers with GELU and norms behind, and what pools the first word."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(100, 64), nn.Embedding(16, 64)
        self.norm = nn.LayerNorm(64)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(64, 4, 128, dropout=0, activation="gelu",
                                                               batch_first=True) for _ in range(2))
        self.pool, self.head = nn.Linear(64, 64), nn.Linear(64, CLASSES)

    def forward(self, x):
        y = self.norm(self.words(x) + self.places(torch.arange(x.shape[1]).expand_as(x)))
        for layer in self.layers:
            y = layer(y)
        return self.head(torch.tanh(self.pool(y[:, 0])))


class Sequence(nn.Module):
    """Encoder layers over (N, L, 64), and classes of each place (N, CLASSES, L)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(64, 4, 128, dropout=0, batch_first=True, norm_first=True)
                                    for _ in range(2))
        self.head = nn.Linear(64, CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x).transpose(1, 2)


def dcgan():
    """Generator and discriminator, one behind the other: (N, 32, 1, 1) -> classes."""
    def up(ins, outs, *how):
        return nn.ConvTranspose2d(ins, outs, 4, *how, bias=False), nn.BatchNorm2d(outs), nn.ReLU()
    return nn.Sequential(*up(32, 32, 1, 0), *up(32, 16, 2, 1),
                         nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False), nn.Tanh(),
                         nn.Conv2d(3, 16, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
                         nn.Conv2d(16, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.LeakyReLU(0.2),
                         nn.Conv2d(32, CLASSES, 4), nn.Flatten())


def mobilenet():
    """torchvision's small MobileNet-v3, without the dropout before its last layer."""
    net = torchvision().models.mobilenet_v3_small(num_classes=CLASSES)
    net.classifier[2] = nn.Identity()
    return net


def images(side):
    """What makes images of so many pixels a side."""
    return lambda count: torch.randn(count, 3, side, side)


#: Name -> what makes a model, and inputs of so many samples.
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], torch.Tensor]]] = {
    "PointNet, classes": (lambda: PointNet(False), lambda count: torch.randn(count, 3, 64)),
    "PointNet, points": (lambda: PointNet(True), lambda count: torch.randn(count, 3, 64)),
    "DCGAN": (dcgan, lambda count: torch.randn(count, 32, 1, 1)),
    "ResNet-18": (lambda: torchvision().models.resnet18(num_classes=CLASSES), images(32)),
    "MobileNet-v3": (mobilenet, images(32)),
    "transformer": (Sequence, lambda count: torch.randn(count, 16, 64)),
    "BERT": (Bert, lambda count: torch.randint(100, (count, 16)))}


def sides(make, x, targets, count):
    """Models one by one and as a job, and a step of each side."""
    alone, joined = (models(make, FORMAT, count) for _ in range(2))
    job = fused.fuse(joined)
    update = fused.Step(job, [torch.optim.SGD(net.parameters(), **SGD) for net in joined])

    def together():
        update.zero_grad()
        losses = [nn.functional.cross_entropy(y, b) for y, b in
                  zip(job(x).chunk(count), targets.chunk(count), strict=True)]
        torch.stack(losses).sum().backward()
        update()
    return alone, joined, serial(alone, x, targets, torch.optim.SGD, SGD), together


def measure(name, count, batch, steps, repeat):
    """Milliseconds of both sides, and how many of their numbers differ after a few steps."""
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    x = inputs(count * batch)
    shape = models(make, FORMAT, 1)[0](x[:2]).shape[2:]
    targets = torch.randint(CLASSES, (len(x), *shape))
    alone, joined, *runs = sides(make, x, targets, count)
    for run in runs:
        for _ in range(3):
            run()
    differ = sum(int((a != b).sum()) for one, other in zip(alone, joined, strict=True)
                 for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))
    one, job = times(runs, steps, repeat)
    return {"model": name, "serial": one, "job": job, "ratio": one / job, "differ": differ}


def main():
    """Compare, time and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fused_published",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=8, help="models of a job (default %(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="samples of each (default %(default)s)")
    parser.add_argument("--steps", type=int, default=2, help="steps of a turn (default %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="turns (default %(default)s)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    args = parser.parse_args()
    torch.set_num_threads(1)
    kernels.set_threads(1)
    table = Table("model", "one by one", "job", "one by one / job", "differ",
                  title=f"ms for a step of {args.count} models")
    found = []
    for name in MODELS:
        row = measure(name, args.count, args.batch, args.steps, args.repeat)
        found.append(row)
        table.add_row(name, f"{row['serial']:.1f}", f"{row['job']:.1f}", f"{row['ratio']:.2f}", str(row["differ"]))
    Console().print(table)
    if args.json:
        files.write_json(args.json, found)


if __name__ == "__main__":
    main()
