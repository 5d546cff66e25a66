"""Several models as one training job: a search over learning rates, each model with a start of its own."""

import runpy
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

_ONE = runpy.run_path(str(Path(__file__).with_name("training.py")))
loss, batches = _ONE["loss"], _ONE["batches"]            # a batch is for all models; a list has one for each

#: How many.
MODELS = 16


def model() -> list[nn.Module]:
    """The job: networks of training.py, from different starts."""
    models = []
    for seed in range(MODELS):
        torch.manual_seed(seed)
        models.append(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    return models


def optimiser(parameters: Iterable[nn.Parameter], number: int) -> torch.optim.Optimizer:
    """Of the parameters of a model, by its number."""
    return torch.optim.SGD(parameters, lr=0.01 * 1.3 ** number, momentum=0.9, weight_decay=1e-4)
