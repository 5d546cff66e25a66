"""A network for ``python -m cosim run`` and ``python -m golden perf``: what a file must define."""

import torch
from torch import nn


def model() -> nn.Module:
    """A small image classifier, in float32: formats come from the command's options."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10), nn.Softmax(-1))


def inputs() -> tuple[torch.Tensor, ...]:
    """Its inputs, the same at every call."""
    return (torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(1)),)
