"""What of a step's graph is written in other operations, with the same bits, before it is lowered."""

import operator

import torch
from torch import fx

from .inserted import inserted
from .masks import by_gates

aten, hbfp = torch.ops.aten, torch.ops.hbfp


def rewrite(module: fx.GraphModule) -> None:
    """Write operations that the accelerator does better, or alone, in place of those that autograd calls.

    A gradient of layer norm takes eps in place of the mean and the root that the forward pass has kept: a program reads
    three tensors at most. For masks: :func:`golden.lower.training.masks.by_gates`.
    """
    for node in list(module.graph.nodes):
        if node.target == aten.native_layer_norm_backward.default:
            _layer_norm(node)
    by_gates(module)


def _layer_norm(node):
    gradient, x, shape, mean, _, weight, *_ = node.args
    while mean.target is not operator.getitem:             # group norm's are views
        mean = mean.args[0]
    node.replace_all_uses_with(inserted(node, hbfp.layer_norm_backward.default, gradient, x, shape,
                                        mean.args[0].args[4], weight))
