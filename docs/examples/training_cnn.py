"""A training with convolutions for ``python -m cosim train``: batch norm keeps its running statistics on the device."""

from collections.abc import Iterable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import nn


def model() -> nn.Module:
    """A small convolutional classifier of digits, in float32: formats come from the command's options."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10))


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
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4)
