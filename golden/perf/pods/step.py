"""Training steps of small models, for the study of fused jobs."""

import torch
from torch import nn

from .graph import Graph
from .trace import trace


class Lstm(nn.Module):
    """One step of an LSTM, its two products side by side; one tensor (batch, width) is input, state and cell."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        i, f, g, o = (self.x(x) + self.h(x)).chunk(4, 1)
        return torch.sigmoid(o) * torch.tanh(torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * x)


def digits(batch: int = 32) -> Graph:
    """A training step of the digits MLP, 64-128-64-10."""
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
        return trace(f"mlp 64-128-64-10, batch {batch}", model, (torch.empty(batch, 64),), train=True)


def lstm(width: int = 2048, batch: int = 32) -> Graph:
    """A training step of an LSTM cell that runs once; input and state have ``width`` numbers."""
    with torch.device("meta"):
        return trace(f"lstm {width}, batch {batch}", Lstm(width), (torch.empty(batch, width),), train=True)
