"""A network that serves, for ``colocate`` of ``golden`` and of ``cosim``: inputs() is a full batch of requests."""

import torch
from sklearn.datasets import load_digits
from torch import nn

#: Requests of a batch.
BATCH = 14


def model() -> nn.Module:
    """A small convolutional classifier of digits, in float32: formats come from the command's options."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10))


def inputs() -> tuple[torch.Tensor, ...]:
    """Images (14, 1, 8, 8), the same at every call."""
    return (requests()[0][:BATCH],)


def requests() -> tuple[torch.Tensor, ...]:
    """What clients ask, in their order: images (1797, 1, 8, 8)."""
    return (torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16,)
