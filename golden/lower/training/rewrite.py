"""What of a step's graph is written in other operations, with the same bits, before it is lowered."""

import operator
from collections.abc import Mapping

import torch
from torch import fx

from ..views import is_view
from .inserted import inserted
from .masks import by_gates

aten, hbfp = torch.ops.aten, torch.ops.hbfp


def rewrite(module: fx.GraphModule, known: Mapping[fx.Node, torch.Tensor]) -> None:
    """Write operations that the accelerator does better, or alone, in place of those that autograd calls.

    A gradient of layer norm takes eps in place of the mean and the root that the forward pass has kept: a program reads
    three tensors at most. For masks, which ``known`` placeholders may be: :func:`~.masks.by_gates`.
    """
    for node in list(module.graph.nodes):
        _keep_operand(node)
        if node.target == aten.native_layer_norm_backward.default:
            _layer_norm(node)
    by_gates(module, known)


def _keep_operand(node):
    """Let an operation that changes its operand, which nothing else reads, give another tensor in its place."""
    packet = getattr(node.target, "overloadpacket", None)
    own = getattr(aten, packet.__name__.removesuffix("_"), None) if packet else None
    if own is None or own is packet or not node.target._schema.is_mutable or not node.args[0].args:
        return
    alone = set(node.args[0].users) == {node} and not is_view(node.args[0].target)
    if alone and node.target._overloadname in own.overloads():
        node.target = getattr(own, node.target._overloadname)


def _layer_norm(node):
    gradient, x, shape, mean, _, weight, *_ = node.args
    while mean.target is not operator.getitem:             # group norm's are views
        mean = mean.args[0]
    node.replace_all_uses_with(inserted(node, hbfp.layer_norm_backward.default, gradient, x, shape,
                                        mean.args[0].args[4], weight))
