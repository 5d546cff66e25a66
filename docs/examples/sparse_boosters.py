"""Accuracy Boosters with pruned weights, for ``python -m cosim train`` and accelerators of ``--wide`` and ``--sparse``.

Layers have 4 bits, the first and the last one 6, and in the last epoch all; each weight keeps the mask that it has at
the start, and forward products take half of the passes at either width.
"""

from collections.abc import Iterable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import nn

from hbfp.golden.schedule import MixedMantissa


def model() -> nn.Module:
    """A small classifier of digits, in float32: formats and masks come from the command's options and ``mantissas``."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 10))


def loss(output: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the targets of a batch."""
    return nn.functional.cross_entropy(output, classes)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """An epoch of inputs and targets; all batches have one size."""
    digits = load_digits()
    images, classes = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    for chosen in order.split(128)[:-1]:
        yield images[chosen], classes[chosen]


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4)


def mantissas() -> MixedMantissa:
    """One epoch of 4 bits whose first and last layer have 6, and one of 6 bits in all layers."""
    return MixedMantissa(base=4, boosted=6, epochs=2, last_epochs=1)
