"""A network with convolutions for ``python -m cosim train`` whose layers have other mantissas in its last epoch."""

from collections.abc import Iterable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import nn

from hbfp.golden.schedule import MixedMantissa


def model() -> nn.Module:
    """A small classifier of digits, in float32: three convolutions, then a linear layer."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


def loss(output: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the targets of a batch."""
    return nn.functional.cross_entropy(output, classes)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """An epoch of images (N, 1, 8, 8) and targets: twenty batches, so that three epochs are soon done."""
    digits = load_digits()
    images, classes = torch.tensor(digits.images, dtype=torch.float32) / 16, torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    for chosen in order.split(16)[:20]:
        yield images[chosen].unsqueeze(1), classes[chosen]


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4)


def mantissas() -> MixedMantissa:
    """Two epochs of 4 bits whose first and last layer have 6, and one of 6 bits in all layers."""
    return MixedMantissa(base=4, boosted=6, epochs=3, last_epochs=1)
