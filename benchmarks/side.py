"""Training with the accelerator's arithmetic beside products, against the same without: ``python -m benchmarks.side``.

ResNet-20 on digits enlarged to 32 x 32 pixels, batches of 32, HBFP8 in blocks (1, 16), SGD with momentum: forward pass,
backward pass and optimiser. Both sides take turns; a figure is the shortest of --repeat steps, in processor time on one
thread, in wall time on more. Then each trains from the same start for --epochs epochs, and the accuracies on the test
images stand side by side; and how far each kind of operation is from PyTorch's own, on the same operands.
"""

import argparse

import torch
from rich.console import Console
from rich.table import Table

import golden.nn as gn
from golden.study.resnet import resnet20
from golden.study.tasks import load

from .golden_speed import best, threads

BATCH, FORMAT = 32, gn.HBFPFormat(mantissa=8, block=(1, 16))
SIDES = {"PyTorch's own functions": None, "the accelerator's": gn.DESIGN_SIDE}


def enlarged(images):
    """Digits of 8 x 8 pixels as pictures of 32 x 32 in three colours."""
    return torch.nn.functional.interpolate(images.view(-1, 1, 8, 8), size=(32, 32)).repeat(1, 3, 1, 1)


def network(side):
    """ResNet-20 from one start, and its optimiser."""
    torch.manual_seed(0)
    net = gn.convert(resnet20(), FORMAT, side=side)
    return net, torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)


def step_of(net, optimiser):
    """A callable that trains on one batch."""
    def step(x, classes):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(x), classes).backward()
        optimiser.step()
    return step


def trained(side, x, classes, epochs):
    """A network after some epochs."""
    net, optimiser = network(side)
    step, order = step_of(net, optimiser), torch.Generator().manual_seed(1)
    for _ in range(epochs):
        for rows in torch.randperm(len(x), generator=order).split(BATCH):
            step(x[rows], classes[rows])
    return net.eval()


def main():
    """Time, train, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    options = parser.parse_args()
    console = Console(width=130)
    x, classes, test, test_classes = load("digits")
    x, test = enlarged(x), enlarged(test)
    table = Table("threads", *(f"{name}, ms" for name in SIDES), "ratio", title="A training step of ResNet-20")
    for count in options.threads:
        steps = [step_of(*network(side)) for side in SIDES.values()]
        with threads(count):
            plain, sided = best([lambda step=step: step(x[:BATCH], classes[:BATCH]) for step in steps], options.repeat)
        table.add_row(str(count), f"{plain * 1e3:.0f}", f"{sided * 1e3:.0f}", f"{sided / plain:.2f}")
    console.print(table)
    if not options.epochs:
        return
    for name, side in SIDES.items():
        net = trained(side, x, classes, options.epochs)
        with torch.no_grad():
            right = (net(test).argmax(1) == test_classes).float().mean().item()
        console.print(f"{name}: {right:.2%} of the test images after {options.epochs} epochs")
    table = Table("operation", "elements", "differ", "largest distance", title="Against PyTorch's own functions")
    for name, far in sorted(gn.distances(net, test[:BATCH]).items()):
        table.add_row(name, f"{far.elements:,}", f"{far.different:,}", f"{far.largest:.2g}")
    console.print(table)


if __name__ == "__main__":
    main()
