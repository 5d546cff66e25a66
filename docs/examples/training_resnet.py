"""A training of ResNet-20 for ``python -m cosim train``: digits as pictures of 32 x 32 pixels in three colours."""

from collections.abc import Iterable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim import lr_scheduler

from hbfp.golden.study.resnet import resnet20

#: Images of a batch, and those that are trained with; the others are for :func:`test`.
BATCH, TRAINED = 8, 1437


def model() -> nn.Module:
    """ResNet-20, in float32: formats come from the command's options."""
    torch.manual_seed(0)
    return resnet20()


def loss(output: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the targets of a batch."""
    return nn.functional.cross_entropy(output, classes)


def images() -> tuple[torch.Tensor, torch.Tensor]:
    """All digits, enlarged, in an order drawn at random: (N, 3, 32, 32) and classes (N)."""
    digits = load_digits()
    order = torch.randperm(len(digits.images), generator=torch.Generator().manual_seed(0))
    small = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    return nn.functional.interpolate(small, size=(32, 32)).repeat(1, 3, 1, 1)[order], torch.tensor(digits.target)[order]


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Images (N, 3, 32, 32) and classes, the same at every call; all batches have one size."""
    pictures, classes = images()
    order = torch.randperm(TRAINED, generator=torch.Generator().manual_seed(1))
    for chosen in order.split(BATCH)[:-1]:
        yield pictures[chosen], classes[chosen]


def test() -> tuple[torch.Tensor, torch.Tensor]:
    """Images and classes that no batch has, for python -m benchmarks.accuracy."""
    pictures, classes = images()
    return pictures[TRAINED:], classes[TRAINED:]


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)


def schedule(optimiser: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
    """A tenth of the rate from step 300 on; its step() is called behind each step of the optimiser."""
    return lr_scheduler.MultiStepLR(optimiser, [300])
