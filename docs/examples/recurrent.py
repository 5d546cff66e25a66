"""A recurrent training for ``python -m cosim train``: an LSTM says the next line of a digit."""

from collections.abc import Iterable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import nn

STEPS, WIDTH, BATCH = 3, 16, 8


class Lines(nn.Module):
    """Lines of pixels, one a step: what follows on each."""

    def __init__(self) -> None:
        super().__init__()
        self.memory, self.next = nn.LSTM(8, WIDTH, batch_first=True), nn.Linear(WIDTH, 8)

    def forward(self, lines: torch.Tensor) -> torch.Tensor:
        """From lines (N, STEPS, 8) to those behind them."""
        return self.next(self.memory(lines)[0])


def model() -> nn.Module:
    """In float32: formats come from the command's options."""
    torch.manual_seed(0)
    return Lines()


def loss(output: torch.Tensor, lines: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the targets of a batch."""
    return nn.functional.mse_loss(output, lines)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and targets, the same at every call; all batches have one size."""
    images = torch.tensor(load_digits().images, dtype=torch.float32) / 16
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    for chosen in order.split(BATCH)[:-1]:
        yield images[chosen, 1:1 + STEPS], images[chosen, 2:2 + STEPS]


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.SGD(parameters, lr=0.5, momentum=0.9)
