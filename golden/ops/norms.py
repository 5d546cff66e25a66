"""Norms in training: gradients of layer and group norm, and batch norm by the statistics of the batch.

A channel of a batch has its sums one after the other, image by image and pixel by pixel, so that no row is as long as a
batch: batch norm is made of sums over rows and of what is done with each element.
"""

from math import prod
from typing import Any

import torch

from ..vector import programs
from .operation import Operation, Rows, Shape, calls
from .results import ALONE, Result

aten = torch.ops.aten

torch.library.define("hbfp::layer_norm_backward", "(Tensor gradient, Tensor x, int[] shape, float eps, Tensor? weight) "
                     "-> (Tensor, Tensor, Tensor)")


@torch.library.impl("hbfp::layer_norm_backward", "CompositeExplicitAutograd")
def _from_eps(gradient, x, shape, eps, weight):
    """Of layer norm, whose mean and root it computes again: a program that takes two tensors in place of four."""
    _, mean, root = aten.native_layer_norm(x, shape, None, None, eps)
    bias = None if weight is None else torch.zeros_like(weight)
    return aten.native_layer_norm_backward(gradient, x, shape, mean, root, weight, bias, [True, True, True])


torch.library.register_fake("hbfp::layer_norm_backward", lambda gradient, x, shape, eps, weight: (
    torch.empty_like(x), x.new_empty(shape), x.new_empty(shape)))


def _layer_norm(gradient, x, shape, mean, root, weight, bias, mask, eps=None):
    """With ``eps``, which torch does not give, the program takes neither mean nor root, and gives the same bits."""
    total = Result(over=tuple(range(x.dim() - len(shape))), keep=False)
    program = programs.layer_norm_gradient(prod(shape), None if weight is None else 1, eps)
    return Rows(program, (x, gradient, *((mean, root) if eps is None else ())), merged=len(shape),
                numbers=() if weight is None else (weight,), results=(*ALONE, total, total))


def _group_norm(gradient, x, mean, root, weight, n, channels, pixels, groups, mask):
    def rows(tensor):
        return tensor.reshape(n, groups, -1)
    lead, over = (-1, *(1 for _ in x.shape[2:])), [d for d in range(x.dim()) if d != 1]
    inner = gradient if weight is None else gradient * weight.reshape(lead)
    mean, root = mean.reshape(n, groups, 1), root.reshape(n, groups, 1)
    found = torch.ops.aten.native_layer_norm_backward(rows(inner), rows(x), [channels // groups * pixels], mean, root,
                                                      None, None, [True, False, False])[0]
    normal = ((rows(x) - mean) * root).reshape(x.shape)
    return found.reshape(x.shape), (gradient * normal).sum(over), gradient.sum(over)


def _along(x):
    """All dimensions but the channels', the shape of a number for each channel, and how many a sum has."""
    over = [d for d in range(x.dim()) if d != 1]
    return over, [-1 if d == 1 else 1 for d in range(x.dim())], prod(x.shape[d] for d in over)


def _by_statistics(x, weight, bias, running_mean, running_var, momentum, eps):
    """Batch norm by the batch: result, mean and 1 / sqrt(variance + eps) of each channel, new running statistics."""
    over, channel, n = _along(x)
    mean = x.sum(over, keepdim=True) * (1 / n)
    apart = x - mean
    variance = (apart * apart).sum(over, keepdim=True) * (1 / n)
    root = torch.rsqrt(variance + eps)
    y = apart * root
    y = y if weight is None else y * weight.reshape(channel)
    y = y if bias is None else y + bias.reshape(channel)
    mean, root, variance = mean.reshape(-1), root.reshape(-1), variance.reshape(-1)
    if running_mean is not None:
        running_mean = running_mean * (1 - momentum) + mean * momentum
        running_var = running_var * (1 - momentum) + variance * (momentum * n / max(n - 1, 1))
    return y, mean, root, running_mean, running_var


def training(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, *rest: Any
             ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Batch norm by the statistics of the batch; running statistics, if there are any, change in place.

    ``rest`` are torch's other arguments: running mean and variance or neither, training, momentum and eps. Returns the
    result and each channel's mean and 1 / sqrt(variance + eps).
    """
    *running, _, momentum, eps = rest
    own_mean, own_variance = running or (None, None)
    y, mean, root, *new = _by_statistics(x, weight, bias, own_mean, own_variance, momentum, eps)
    if own_mean is not None and own_variance is not None:
        own_mean.copy_(new[0])
        own_variance.copy_(new[1])
    return y, mean, root


def _functional(x, weight, bias, running_mean, running_var, train, momentum, eps):
    if train:
        return _by_statistics(x, weight, bias, running_mean, running_var, momentum, eps)
    y, *kept = torch.ops.aten.native_batch_norm(x, weight, bias, running_mean, running_var, False, momentum, eps)
    return y, *kept, running_mean.clone(), running_var.clone()


def _batch_norm(gradient, x, weight, running_mean, running_var, mean, root, train, eps, mask):
    over, channel, n = _along(x)
    if not train:
        mean, root = running_mean, torch.rsqrt(running_var + eps)
    mean, root = mean.reshape(channel), root.reshape(channel)
    factor = root if weight is None else weight.reshape(channel) * root
    normal = (x - mean) * root
    beta, gamma = gradient.sum(over, keepdim=True), (gradient * normal).sum(over, keepdim=True)
    found = gradient
    if train:
        found = (gradient - beta * (1 / n)) - normal * (gamma * (1 / n))
    return found * factor, gamma.reshape(-1), beta.reshape(-1)


OPERATIONS = (
    Operation("batch_norm", calls("_native_batch_norm_legit_functional"), Shape.PARTS, parts=_functional),
    Operation("layer_norm_backward", calls("native_layer_norm_backward"), Shape.ROW, _layer_norm, gradient=True),
    Operation("layer_norm_backward", (torch.ops.hbfp.layer_norm_backward,), Shape.ROW,
              lambda gradient, x, shape, eps, weight: _layer_norm(gradient, x, shape, None, None, weight, None, None,
                                                                  eps), gradient=True),
    Operation("group_norm_backward", calls("native_group_norm_backward"), Shape.PARTS, parts=_group_norm,
              gradient=True),
    Operation("batch_norm_backward", calls("native_batch_norm_backward"), Shape.PARTS, parts=_batch_norm,
              gradient=True))
