"""Losses of a job: the sum of the models' own, with their gradients bit for bit."""

import torch
from torch import nn

from ..once import once_differentiable


class _CrossEntropy(torch.autograd.Function):
    """Sum over the models of the mean cross entropy of their rows."""

    @staticmethod
    def forward(ctx, logits, targets, rows):
        logs = logits.log_softmax(1)
        ctx.save_for_backward(logs, targets)
        ctx.rows = rows
        return -logs.gather(1, targets[:, None]).sum() / rows

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        logs, targets = ctx.saved_tensors
        top = torch.zeros_like(logs).scatter_(1, targets[:, None], -(g / ctx.rows).item())
        return torch.ops.aten._log_softmax_backward_data(top, logs, 1, logs.dtype), None, None


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

    Raises
    ------
    ValueError
        If the shapes do not fit each other or the number of models.
    """
    if logits.dim() != 2 or targets.shape != logits.shape[:1] or len(logits) % count:
        raise ValueError(f"Shapes of logits and targets must be ({count} * N, classes) and ({count} * N,), not "
                         f"{tuple(logits.shape)} and {tuple(targets.shape)}")
    return _CrossEntropy.apply(logits, targets, len(logits) // count)


def mse_loss(outputs: torch.Tensor, targets: torch.Tensor, count: int) -> torch.Tensor:
    """Sum over the models of ``torch.nn.functional.mse_loss``; arguments as :func:`cross_entropy`."""
    parts = zip(outputs.chunk(count), targets.chunk(count), strict=True)
    return torch.stack([nn.functional.mse_loss(y, t) for y, t in parts]).sum()
