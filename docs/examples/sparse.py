"""A classifier of digits for accelerators with ``--sparse``, to be run or trained; ``masks()`` has them made anew."""

from collections.abc import Iterable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import nn


def model() -> nn.Module:
    """In float32: with ``--sparse N,M`` its linear layers are pruned."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


def inputs() -> tuple[torch.Tensor, ...]:
    """Images for ``cosim run``."""
    return next(batches())[:1]


def loss(output: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the targets of a batch."""
    return nn.functional.cross_entropy(output, classes)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and targets, the same at every call; all batches have one size."""
    digits = load_digits()
    images, classes = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    for chosen in order.split(128)[:-1]:
        yield images[chosen], classes[chosen]


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def masks() -> int:
    """After how many steps masks are made anew; without this function they stay as they are at the start."""
    return 1
