"""What of a step's graph is written in other operations, with the same bits, before it is lowered."""

import operator

import torch
from torch import fx

aten, hbfp = torch.ops.aten, torch.ops.hbfp


def rewrite(graph: fx.Graph) -> None:
    """Write operations that the accelerator does better, or alone, in place of those that autograd calls.

    A gradient of layer norm takes eps in place of the mean and the root that the forward pass has kept: a program reads
    three tensors at most.
    """
    for node in list(graph.nodes):
        if node.target == aten.native_layer_norm_backward.default:
            _layer_norm(graph, node)
    graph.eliminate_dead_code()


def _layer_norm(graph, node):
    gradient, x, shape, mean, _, weight, *_ = node.args
    assert mean.target is operator.getitem
    with graph.inserting_before(node):
        made = graph.call_function(hbfp.layer_norm_backward.default, (gradient, x, shape, mean.args[0].args[4], weight))
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
