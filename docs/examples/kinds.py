"""A layer of each kind that trains: 3 x 3, 1 x 1, strided and depthwise convolutions, linear layers, attention.

For the share of the array that each of a layer's three products takes; what it learns, of random images, is nothing.
"""

import torch
from torch import nn


class Kinds(nn.Module):
    """(N, 8, 12, 12) -> (N, 10); each kind is a part by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 32, 1)                   # whose images have no gradient
        self.pixel = nn.Conv2d(32, 32, 3, padding=1)
        self.point = nn.Conv2d(32, 64, 1)
        self.strided = nn.Conv2d(64, 32, 3, 2, 1)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.linear = nn.Linear(32, 96)
        self.attention = Attention()
        self.last = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.pixel(torch.relu(self.first(x))))
        x = torch.relu(self.depthwise(torch.relu(self.strided(torch.relu(self.point(x))))))
        x = self.attention(self.linear(x.flatten(2).transpose(1, 2)))
        return self.last(x.mean(1))


class Attention(nn.Module):
    """q, k and v beside each other (N, tokens, 96) -> (N, tokens, 32)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = x.chunk(3, -1)
        return torch.softmax(q @ k.transpose(-2, -1) / 32 ** 0.5, -1) @ v


def model():
    torch.manual_seed(1)
    return Kinds()


def batches():
    torch.manual_seed(2)
    yield (torch.randn(4, 8, 12, 12),), (torch.randint(10, (4,)),)


loss = nn.functional.cross_entropy


def optimiser(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
