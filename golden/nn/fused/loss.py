"""Losses of a job: the sum of the models' own, with their gradients bit for bit."""

import torch
from torch import nn


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor, count: int) -> torch.Tensor:
    """Sum over the models of ``torch.nn.functional.cross_entropy``, whose gradients it has bit for bit.

    Parameters
    ----------
    logits : Tensor
        (count * N, classes).
    targets : Tensor
        (count * N,) class numbers.
    count : int
        Models.
    """
    chosen = logits.log_softmax(1).gather(1, targets[:, None])
    return -chosen.sum() / (len(logits) // count)


def mse_loss(outputs: torch.Tensor, targets: torch.Tensor, count: int) -> torch.Tensor:
    """Sum over the models of ``torch.nn.functional.mse_loss``; arguments as :func:`cross_entropy`."""
    parts = zip(outputs.chunk(count), targets.chunk(count), strict=True)
    return torch.stack([nn.functional.mse_loss(y, t) for y, t in parts]).sum()
