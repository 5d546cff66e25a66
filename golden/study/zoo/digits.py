"""A multilayer perceptron for the digits of scikit-learn: which widths, learning rate and momentum suit it.

Any file with such functions can be given to ``python -m golden tune --model FILE``; ``optimiser`` may be left out.
"""

from collections.abc import Iterable

import optuna
import torch
from torch import nn

from hbfp.golden.study import tasks

BATCH = 32


def data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs and classes to train on, inputs and classes to judge by."""
    return tasks.load("digits")


def model(trial: optuna.Trial) -> nn.Module:
    """The network of a trial."""
    hidden = trial.suggest_categorical("hidden", [32, 64])
    return nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))


def optimiser(trial: optuna.Trial, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimiser of a trial."""
    return torch.optim.SGD(parameters, trial.suggest_float("rate", 1e-3, 0.3, log=True),
                           momentum=trial.suggest_float("momentum", 0.5, 0.95))
