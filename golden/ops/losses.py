"""Losses and their gradients, of the table's own operations: what ``cross_entropy`` and ``mse_loss`` are made of.

A class number stands for a row of the table of classes: 1 in its place, +0 elsewhere, and +0 everywhere if it is the
one that is to be ignored. Whoever holds the numbers makes these rows; no arithmetic does.
"""

from math import prod

import torch

from .operation import Operation, Shape, Unsupported, calls

aten = torch.ops.aten
_NONE, _MEAN, _SUM = range(3)                              #: torch's numbers of reductions


def _hot(target, classes, ignored):
    """Rows of the table of classes; a number that is none is an IndexError, in a graph that is run one of torch's."""
    kept = target != ignored
    if type(target) is torch.Tensor and not target.is_meta:                     # as torch's own kernel does
        wrong = target[kept & ((target < 0) | (target >= classes))]
        if len(wrong):
            raise IndexError(f"Target {wrong[0].item()} is out of bounds.")
    rows = torch.zeros(*target.shape, classes, device=target.device)
    return rows.scatter(-1, torch.where(kept, target, 0).unsqueeze(-1), kept.to(torch.float32).unsqueeze(-1))


def _weighted(rows, weight):
    return rows if weight is None else rows * weight


def _check(logs, target):
    if logs.dim() not in (1, 2) or target.dim() != logs.dim() - 1:
        raise Unsupported(f"it has {logs.dim()} dimensions; one row of classes for each number of the batch would do")


def _nll_loss(logs, target, weight, reduction, ignored):
    _check(logs, target)
    hot = _hot(target, logs.shape[-1], ignored)
    chosen = _weighted(aten.threshold_backward(logs, hot, 0), weight)           # a gate: -inf elsewhere is no NaN
    total = _weighted(hot, weight).sum()
    if reduction == _NONE:
        return -chosen.sum(-1), total
    loss = -chosen.sum()
    return loss / total if reduction == _MEAN else loss, total


def _nll_gradient(gradient, logs, target, weight, reduction, ignored, total):
    _check(logs, target)
    share = gradient / total if reduction == _MEAN else gradient
    return _weighted(_hot(target, logs.shape[-1], ignored), weight) * (-share).unsqueeze(-1)


def _flat(logs, target):
    """Classes along dimension 1 as rows of them, and their numbers, in the order of the latter."""
    return logs.movedim(1, -1).flatten(0, -2), target.flatten()


def _nll_images(logs, target, weight, reduction, ignored):
    loss, total = _nll_loss(*_flat(logs, target), weight, reduction, ignored)
    return loss.reshape(target.shape) if reduction == _NONE else loss, total


def _nll_images_gradient(gradient, logs, target, weight, reduction, ignored, total):
    gradient = gradient.flatten() if reduction == _NONE else gradient
    found = _nll_gradient(gradient, *_flat(logs, target), weight, reduction, ignored, total)
    return found.reshape(*target.shape, -1).movedim(-1, 1)


def _mse_loss(x, y, reduction=_MEAN):
    squares = (x - y).square()
    return squares if reduction == _NONE else squares.mean() if reduction == _MEAN else squares.sum()


def _mse_gradient(gradient, x, y, reduction):
    return (x - y) * (2 / prod(x.shape) if reduction == _MEAN else 2.0) * gradient


OPERATIONS = (
    Operation("nll_loss", calls("nll_loss_forward"), Shape.PARTS, parts=_nll_loss),
    Operation("nll_loss2d", calls("nll_loss2d_forward"), Shape.PARTS, parts=_nll_images),
    Operation("nll_loss2d_backward", calls("nll_loss2d_backward"), Shape.PARTS, parts=_nll_images_gradient,
              gradient=True),
    Operation("mse_loss", calls("mse_loss"), Shape.PARTS, parts=_mse_loss),
    Operation("nll_loss_backward", calls("nll_loss_backward"), Shape.PARTS, parts=_nll_gradient, gradient=True),
    Operation("mse_loss_backward", calls("mse_loss_backward"), Shape.PARTS, parts=_mse_gradient, gradient=True))
