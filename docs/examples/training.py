"""A training for ``python -m cosim train``: what a file must define."""

from collections.abc import Iterable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import nn


def model() -> nn.Module:
    """A small classifier of digits, in float32: formats come from the command's options."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def loss(output: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the targets of a batch."""
    return nn.functional.cross_entropy(output, classes)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and targets, the same at every call; all batches have one size."""
    digits = load_digits()
    images, classes = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    for chosen in order.split(32)[:-1]:
        yield images[chosen], classes[chosen]


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4)
