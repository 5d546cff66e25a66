"""An LSTM that adds numbers up as they come: which format does it need?

``python -m golden compare docs/examples/sequence.py --epochs 2`` answers.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

#: Numbers of a sequence, sequences of a batch, steps of an epoch, epochs, sequences that judge, and cells.
LENGTH, BATCH, STEPS, EPOCHS, JUDGED, CELLS = 12, 64, 400, 2, 1000, 64


def _sequences(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs (count, LENGTH, 2) of a number and a mark, and sums of the two numbers that are marked (count, 1)."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.rand(count, LENGTH, generator=generator)
    places = torch.rand(count, LENGTH, generator=generator).argsort(1)[:, :2]
    marks = torch.zeros(count, LENGTH).scatter_(1, places, 1.0)
    return torch.stack((numbers, marks), 2), (numbers * marks).sum(1, keepdim=True)


class Adder(nn.Module):
    """(N, LENGTH, 2) -> (N, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.sum = nn.LSTM(2, CELLS, batch_first=True), nn.Linear(CELLS, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum, of the last state."""
        return self.sum(self.cells(x)[0][:, -1])


def model() -> nn.Module:
    """The network in float32; its first weights are drawn from torch's generator, whose seed the command sets."""
    return Adder()


def loss(output: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the sums."""
    return nn.functional.mse_loss(output, sums)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """What an epoch learns from."""
    x, sums = _sequences(BATCH * STEPS, 0)
    yield from zip(x.split(BATCH), sums.split(BATCH), strict=True)


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.Adam(parameters, lr=1e-2)


def schedule(optimiser: torch.optim.Optimizer) -> Any:
    """The rate falls to 0 on a cosine."""
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS * STEPS)


def metric(net: nn.Module) -> float:
    """root of the mean square error"""
    x, sums = _sequences(JUDGED, 1)
    return (net(x) - sums).square().mean().sqrt().item()


def better() -> str:
    """An error is the better the smaller."""
    return "lower"
