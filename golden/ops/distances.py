"""Losses of numbers and of probabilities, of the table's own operations: smooth and absolute errors, binary entropy."""

from math import prod

import torch

from .activations import above_zero
from .operation import Operation, Shape, calls

aten = torch.ops.aten
_NONE, _MEAN, _SUM = range(3)                              #: torch's numbers of reductions


def _reduced(losses, reduction):
    return losses if reduction == _NONE else losses.mean() if reduction == _MEAN else losses.sum()


def _shared(gradient, losses, reduction):
    """A gradient of each number by that of their mean or sum."""
    return losses * (1 / prod(losses.shape)) * gradient if reduction == _MEAN else losses * gradient


def _smooth(x, y, reduction=_MEAN, beta=1.0):
    apart = (x - y).abs()
    if not beta:
        return _reduced(apart, reduction)
    near = aten.hardtanh(apart, 0.0, beta)
    return _reduced(near * near * (0.5 / beta) + (apart - near), reduction)


def _smooth_gradient(gradient, x, y, reduction, beta):
    apart = x - y
    return _shared(gradient, aten.hardtanh(apart * (1 / beta), -1.0, 1.0) if beta else apart.sgn(), reduction)


def _huber(x, y, reduction=_MEAN, delta=1.0):
    apart = (x - y).abs()
    near = aten.hardtanh(apart, 0.0, delta)
    return _reduced(near * near * 0.5 + (apart - near) * delta, reduction)


def _huber_gradient(gradient, x, y, reduction, delta):
    return _shared(gradient, aten.hardtanh(x - y, -delta, delta), reduction)


def _binary(x, target, weight=None, positive=None, reduction=_MEAN):
    """Of logits: (1 - t) x + log(1 + exp(-x)), the latter times (p - 1) t + 1."""
    rest = torch.relu(-x) + above_zero(x)
    rest = rest if positive is None else rest * (target * (positive - 1) + 1)
    losses = (1 - target) * x + rest
    return _reduced(losses if weight is None else losses * weight, reduction)


OPERATIONS = (
    *(Operation(name, calls(name), Shape.PARTS, parts=parts) for name, parts in (
        ("smooth_l1_loss", _smooth), ("huber_loss", _huber), ("binary_cross_entropy_with_logits", _binary))),
    *(Operation(name, calls(name), Shape.PARTS, parts=parts, gradient=True) for name, parts in (
        ("smooth_l1_loss_backward", _smooth_gradient), ("huber_loss_backward", _huber_gradient))))
