"""MobileNet-v2, not trained, on an image of 224 x 224 pixels; it needs torchvision (pip install 'hbfp[networks]')."""

import torch
from torch import nn

from hbfp.golden.perf.pods.networks import torchvision


def model() -> nn.Module:
    torch.manual_seed(1)
    return torchvision().models.mobilenet_v2()


def inputs() -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(1, 3, 224, 224),)
