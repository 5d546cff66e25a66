"""A depthwise convolution of 19 channels: blocks straddle pixels, and each channel is a product of its own."""

import torch
from torch import nn


def model() -> nn.Module:
    """One layer, in float32."""
    torch.manual_seed(1)
    return nn.Conv2d(19, 19, 3, padding=1, groups=19)


def inputs() -> tuple[torch.Tensor, ...]:
    """Three images of 11 x 9 pixels."""
    return (torch.randn(3, 19, 11, 9, generator=torch.Generator().manual_seed(2)),)
