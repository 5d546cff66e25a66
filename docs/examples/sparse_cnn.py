"""A training with pruned convolutions for accelerators with ``--sparse 2,4``; the masks stay as they are."""

from collections.abc import Iterable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import nn

from hbfp.format import HBFPFormat
from hbfp.golden.nn import convert, sparsify


def model() -> nn.Module:
    """A classifier of digits; which layers are sparse is said by pruning them, here three of four convolutions."""
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
        nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 32, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(32, 10))
    return sparsify(convert(layers, HBFPFormat(block=(1, 16))), "2:4", layers=["2", "4", "6"])


def inputs() -> tuple[torch.Tensor, ...]:
    """Images for ``cosim run``."""
    return next(batches())[:1]


def loss(output: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the targets of a batch."""
    return nn.functional.cross_entropy(output, classes)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Images (N, 1, 8, 8) and classes, the same at every call; all batches have one size."""
    digits = load_digits()
    images, classes = torch.tensor(digits.images, dtype=torch.float32) / 16, torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    for chosen in order.split(16)[:-1]:
        yield images[chosen].unsqueeze(1), classes[chosen]


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
