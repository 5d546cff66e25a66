"""What of the nodes behind a product the core does on the way out: bias, batch norm, ReLU."""

import operator
from typing import Any

import numpy as np
import torch
from torch import fx

from hbfp.golden.nn.side import norm_factors

from ..nodes import Nodes
from ..products.weights import Steps
from ..same import aten

hbfp = torch.ops.hbfp
#: Batch norms: which of their arguments is eps.
NORMS = {aten.batch_norm.default: 7, aten._native_batch_norm_legit_no_training.default: 6}


def steps_behind(net: Nodes, node: Any, channel: int) -> tuple[Steps, fx.Node]:
    """What of the nodes behind a product the core does, and the last of those nodes."""
    steps = Steps()
    last = node
    if (user := net.follower(last, hbfp.add_bias.default, aten.add.Tensor)) is not None \
            and len(user.args) == 2 and not user.kwargs and _bias(net, user, channel) is not None:
        steps.bias, last = _bias(net, user, channel), user
    norm = net.follower(last, *NORMS)
    if norm is not None and steps.bias is None and channel == 1 and learned(norm):
        first = net.follower(norm, operator.getitem)
        factor, addend = norm_rows(net, norm)
        steps.scale, steps.bias, last = factor.view(np.float32), addend.view(np.float32), first or norm
    if (user := net.follower(last, aten.relu.default, aten.relu_.default)) is not None:
        steps.relu, last = True, user
    each = node
    while each is not last:
        each = next(iter(user for user in each.users if user in net.live))
        net.done.add(each)
    return steps, last


def norm_rows(net: Nodes, node: Any) -> tuple[np.ndarray, np.ndarray]:
    """Factor and addend of each channel of a batch norm, as bit patterns."""
    weight, bias, mean, variance = (net.constant(each) for each in node.args[1:5])
    return norm_factors(weight, bias, mean, variance, node.args[NORMS[node.target]])


def _bias(net, node, channel):
    """The addends of each channel that a node adds to a product's result, or None."""
    other = node.args[1]
    if not net.is_constant(other) or not isinstance(other, fx.Node):
        return None
    numbers = net.constant(other)
    dims = net.graph.results[node].dim()
    shape = [1] * (dims - numbers.dim()) + list(numbers.shape)
    full = net.graph.results[node].shape[channel]
    if shape[channel] != full or any(size != 1 for d, size in enumerate(shape) if d != channel % dims):
        return None
    return numbers.reshape(-1).numpy()


def learned(norm: Any) -> bool:
    """Whether a batch norm has statistics of its own."""
    return norm.target != aten.batch_norm.default or norm.args[3] is not None and not norm.args[5]
