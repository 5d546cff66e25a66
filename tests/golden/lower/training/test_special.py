"""NaN and Inf in a batch: all products, norms, losses and optimisers give PyTorch's bits, and end.

Covers: golden/lower/training/reference.py.
"""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.cases import sweep

from .steps import MACHINES, accelerator, follow
from .test_dropout import encoder

pytestmark = pytest.mark.filterwarnings("ignore")


def images():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(32, 10))


def check(model, loss, shape, machine, optimiser, wanted):
    """Three steps: one with ordinary numbers, one with Inf, one with NaN, and what parameters then are."""
    torch.manual_seed(2)
    batches = []
    for value in (1.0, math.inf, math.nan):
        x, target = torch.randn(*shape), wanted()
        x.view(len(x), -1)[1, 2] = value
        batches.append(((x,), (target,)))
    _, last = follow(model, loss, batches, machine, optimiser)
    assert not math.isfinite(float(last["loss"])) and any(
        not math.isfinite(float(values.sum())) for name, values in last.items() if name.endswith("after"))


def classes():
    return torch.randint(10, (3,))


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=0.01)


@pytest.mark.slow
def test_a_transformer_with_dropout():
    check(encoder(), F.cross_entropy, (3, 4, 11), accelerator(rounding="stochastic"), adam, classes)


def test_images():
    check(images(), F.cross_entropy, (3, 3, 4, 4), MACHINES["8-tiles"], None, classes)


@pytest.mark.parametrize("loss", sweep(2, [F.smooth_l1_loss, F.mse_loss, F.binary_cross_entropy_with_logits]))
def test_losses(loss):
    check(nn.Linear(11, 10), loss, (3, 11), MACHINES["8"], adam, lambda: torch.rand(3, 10))
