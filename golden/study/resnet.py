"""ResNet-20 for 32 x 32 images: the network that the block floating point literature trains on CIFAR-10."""

import torch
from torch import nn


class Block(nn.Module):
    """Two 3 x 3 convolutions and a shortcut: identity, or zeros for new channels (option A of He et al. 2016)."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride, self.extra = stride, channels - channels_in

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, C, H, W) -> (N, channels, H / stride, W / stride)."""
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        if self.extra:
            x = nn.functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.extra))
        return torch.relu(y + x)


def resnet20(classes: int = 10) -> nn.Module:
    """Three stages of three blocks at 16, 32 and 64 channels."""
    parts = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for width in (16, 32, 64):
        for index in range(3):
            parts.append(Block(channels, width, 2 if width != 16 and index == 0 else 1))
            channels = width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))
