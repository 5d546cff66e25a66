"""Which format for this model? ``python -m golden compare docs/examples/formats.py`` answers."""

from collections.abc import Iterable, Iterator

import torch
from torch import nn

#: Images to learn from, and to be judged by.
LEARN, JUDGE = 6000, 2000


def _data() -> tuple[torch.Tensor, torch.Tensor]:
    """Points (N, 16) and the classes that a random network with fine borders gives them."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(LEARN + JUDGE, 16, generator=generator)
    first, second, last = (torch.randn(*shape, generator=generator) for shape in ((16, 64), (64, 64), (64, 10)))
    y = torch.tanh(torch.tanh(x @ first / 2) @ second * 1.5 / 8) @ last
    return x, ((y - y.mean(0)) / y.std(0)).argmax(1)


def model() -> nn.Module:
    """A classifier in float32; its first weights are drawn from torch's generator, whose seed the command sets."""
    return nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


def loss(output: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the targets of a batch."""
    return nn.functional.cross_entropy(output, classes)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """What an epoch learns from; the command changes the order with seed and epoch."""
    x, classes = _data()
    yield from zip(x[:LEARN].split(50), classes[:LEARN].split(50), strict=True)


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.Adam(parameters, lr=2e-3)


def metric(net: nn.Module) -> float:
    """accuracy, %"""
    x, classes = _data()
    return (net(x[LEARN:]).argmax(1) == classes[LEARN:]).double().mean().item() * 100
