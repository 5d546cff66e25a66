"""What of the nodes behind a product the core does on the way out: bias, batch norm, ReLU."""

import operator
from typing import Any

import numpy as np
import torch
from torch import fx

from hbfp.golden.nn.forms import patterns
from hbfp.golden.ops.operation import Rows
from hbfp.golden.ops.table import operation_of

from ..errors import LoweringError
from ..nodes import Nodes
from ..products.weights import Steps
from ..same import aten
from .forms import formed

hbfp = torch.ops.hbfp


def steps_behind(net: Nodes, node: Any, channel: int) -> tuple[Steps, fx.Node]:
    """What of the nodes behind a product the core does, and the last of those nodes.

    That is a constant factor of each channel and a bias or, where the channels are dimension 1, a batch norm; and a
    ReLU after it. ``channel`` is the dimension of the result's channels.
    """
    steps = Steps()
    last = node
    if (user := net.follower(last, aten.mul.Tensor)) is not None and (factor := _each(net, user, channel)) is not None:
        steps.scale, last = factor, user
    if (user := net.follower(last, hbfp.add_bias.default, aten.add.Tensor)) is not None \
            and len(user.args) == 2 and not user.kwargs and _bias(net, user, channel) is not None:
        steps.bias, last = _bias(net, user, channel), user
    if steps.scale is steps.bias is None and channel == 1 and (found := _norm(net, last)) is not None:
        norm, (factor, addend) = found
        steps.scale, steps.bias = factor.view(np.float32), addend.view(np.float32)
        last = net.follower(norm, operator.getitem) or norm
    if (user := net.follower(last, aten.relu.default, aten.relu_.default)) is not None:
        steps.relu, last = True, user
    each = node
    while each is not last:
        each = next(iter(user for user in each.users if user in net.live))
        net.done.add(each)
    return steps, last


def _norm(net, last):
    """The batch norm behind a node, with factor and addend of each channel as bit patterns; None if there is none."""
    user = net.only_user(last)
    operation = None if user is None else operation_of(user.target)
    if operation is None or operation.name != "batch_norm":
        return None
    try:
        form, _ = formed(net, user)
    except LoweringError:                                  # which it meets again when its own turn comes
        return None
    assert isinstance(form, Rows)
    return user, form.fixed(*map(patterns, form.numbers))


def _bias(net, node, channel):
    """The addends of each channel that a node adds to a product's result, or None: numbers, or where they lie."""
    other = node.args[1]
    if channel == -1 and isinstance(other, fx.Node) and not net.is_constant(other) and net.is_there(other) \
            and net.value(other).shape == net.graph.results[node].shape[-1:]:
        return net.value(other)
    return _each(net, node, channel)


def _each(net, node, channel):
    """The constants of each channel that a node's second operand is; None if it is anything else."""
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
