"""ResNet-20 on generated images whose details are up to two thousand times fainter than their colours: which format
still sees them?

``python -m golden compare docs/examples/images.py --epochs 4`` answers.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import torch
from torch import nn

#: Images to learn from and to be judged by, pixels of a side, classes, images of a batch, and epochs.
LEARN, JUDGE, SIDE, CLASSES, BATCH, EPOCHS = 6400, 2000, 16, 8, 32, 4
#: Contrast of the detail to the colours, in decibels: the strongest and the faintest; standard deviation of noise.
STRONGEST, FAINTEST, NOISE = 12, -66, 0.001
#: Radians from one pixel to the next along a detail's direction.
STEP = 2.2


@cache
def _images() -> tuple[torch.Tensor, torch.Tensor]:
    """Images (N, 3, SIDE, SIDE) and their classes: smooth colours, on them fine lines whose direction is the class."""
    generator = torch.Generator().manual_seed(0)
    count = LEARN + JUDGE
    colours = torch.randn(count, 3, 3, 3, generator=generator)
    colours = nn.functional.interpolate(colours, SIDE, mode="bicubic", align_corners=True)
    classes = torch.randint(CLASSES, (count,), generator=generator)
    angle = (classes * torch.pi / CLASSES)[:, None, None]
    phase = 2 * torch.pi * torch.rand(count, 1, 1, generator=generator)
    contrast = STRONGEST + (FAINTEST - STRONGEST) * torch.rand(count, 1, 1, generator=generator)
    row, column = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    lines = 2 ** 0.5 * torch.sin(STEP * (angle.cos() * row + angle.sin() * column) + phase)
    x = colours / colours.std((1, 2, 3), keepdim=True) + (10 ** (contrast / 20) * lines)[:, None]
    return x + NOISE * torch.randn(x.shape, generator=generator), classes


class Block(nn.Module):
    """Two convolutions with batch norm, and what goes past them: (N, C, H, W) -> (N, width, H / stride, W / stride)."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
        self.past = nn.Conv2d(channels, width, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        y = self.norms[0](self.first(x)).relu()
        return (self.norms[1](self.second(y)) + self.past(x)).relu()


def model() -> nn.Module:
    """ResNet-20 in float32, of half the channels, for images of half the side."""
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
    channels = 8
    for width in (8, 16, 32):
        for number in range(3):
            layers.append(Block(channels, width, 2 if width > 8 and not number else 1))
            channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


def loss(output: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the targets of a batch."""
    return nn.functional.cross_entropy(output, classes)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """What an epoch learns from."""
    x, classes = _images()
    yield from zip(x[:LEARN].split(BATCH), classes[:LEARN].split(BATCH), strict=True)


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)


def schedule(optimiser: torch.optim.Optimizer) -> Any:
    """The rate falls to 0 on a cosine."""
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS * LEARN // BATCH)


def metric(net: nn.Module) -> float:
    """accuracy, %"""
    x, classes = _images()
    found = torch.cat([net(part) for part in x[LEARN:].split(100)])
    return (found.argmax(1) == classes[LEARN:]).double().mean().item() * 100
