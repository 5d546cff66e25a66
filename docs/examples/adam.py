"""The training of training.py with AdamW, a schedule of its rate, and clipped gradients."""

import runpy
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn
from torch.optim import lr_scheduler

_SGD = runpy.run_path(str(Path(__file__).with_name("training.py")))
model, loss, batches = _SGD["model"], _SGD["loss"], _SGD["batches"]


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.01)


def schedule(optimiser: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
    """Five steps of warming up, then half a cosine; its step() is called behind each step of the optimiser."""
    return lr_scheduler.SequentialLR(optimiser, [lr_scheduler.LinearLR(optimiser, 0.1, total_iters=5),
                                                 lr_scheduler.CosineAnnealingLR(optimiser, 45)], milestones=[5])


def clip() -> float:
    """The norm of all gradients together that no step passes."""
    return 1.0
