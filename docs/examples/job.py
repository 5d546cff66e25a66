"""Several models as one program of the accelerator: those of a search, each with weights of its own."""

import torch
from torch import nn

#: How many.
MODELS = 16


def network(seed: int) -> nn.Module:
    """64-128-64-10, from a start of its own."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def model() -> list[nn.Module]:
    """The job."""
    return [network(seed) for seed in range(MODELS)]


def inputs() -> tuple[torch.Tensor, ...]:
    """A batch of 32, which all models share; a list has a tuple for each."""
    return (torch.randn(32, 64, generator=torch.Generator().manual_seed(1)),)
