"""The gradients of products as products of their own, and sums over the batch.

A layer's are gx = g W and gw = g^T x, of all its rows; those of a stacked product y = a b are g b^T and a^T g.
"""

import operator
from collections.abc import Mapping
from functools import partial

import torch
from torch import fx

from ..graph import named
from .inserted import inserted

#: The name under which a node keeps the layer that called it.
LAYER = "hbfp_layer"
hbfp, aten = torch.ops.hbfp, torch.ops.aten


def take_apart(graph: fx.Graph, names: Mapping[str, str]) -> None:
    """Write products and sums in place of the operators that autograd calls.

    Nodes get the part of the step that they belong to, and the layer, as the name of their module. All operands of an
    accelerator have one format, so that a gradient's product has the bits of any other.

    Parameters
    ----------
    graph : fx.Graph
        It gives the loss first.
    names : mapping
        Placeholder -> name of the parameter that it is.
    """
    forward = _needed(graph.output_node().args[0][:1])
    for node in list(graph.nodes):
        part = "forward" if node in forward else "backward"
        call(node, part, node.meta.get(LAYER) or named(node))
        if node.target == hbfp.linear.default:
            call(node, part, _layer(node.args[1], names))
        elif node.target == hbfp.linear_backward.default:
            _linear(node, _layer(node.args[2], names))
        elif node.target == hbfp.matmul_backward.default:
            _matmul(node)
        elif node.target == hbfp.add_bias_backward.default:
            g, _, bias, _ = node.args
            total = _new(node, f"{_layer(bias, names)}.bias", part, aten.sum.dim_IntList, g,
                         list(range(g.meta["val"].dim() - 1)))
            _replace(node, g, total)
        elif node.target == aten.ones.default and not node.args[0]:      # the gradient of the loss itself
            for user in [each for each in node.users if each.target == aten.mul.Tensor]:
                other = user.args[user.args[0] is node]
                if isinstance(other, fx.Node):
                    user.replace_all_uses_with(other)
    graph.eliminate_dead_code()


def call(node: fx.Node, part: str, name: str) -> None:
    """Say which part of the step a node belongs to, and what it is of there."""
    node.meta["nn_module_stack"] = {"": (f"{part} {name}", None)}


def _linear(node, layer):
    g, x, w, formats, _ = node.args

    def rows(tensor, part):
        shape = tensor.meta["val"].shape
        return tensor if len(shape) == 2 else new(part, aten.reshape.default, tensor, [-1, shape[-1]])
    new = partial(_new, node, layer)
    gx = new("gx", hbfp.matmul.default, rows(g, "gx"), w, formats)
    if x.meta["val"].dim() != 2:
        gx = new("gx", aten.reshape.default, gx, list(x.meta["val"].shape))
    gw = new("gw", hbfp.matmul.default, new("gw", aten.t.default, rows(g, "gw")), rows(x, "gw"), formats)
    _replace(node, gx, gw)


def _matmul(node):
    g, a, b, formats, _ = node.args
    forward = next(user for user in a.users if user.target == hbfp.matmul.default and user.args[:2] == (a, b))
    new = partial(_new, node, forward.meta.get(LAYER) or named(forward))
    ga = new("gx", hbfp.matmul.default, g, new("gx", aten.transpose.int, b, -2, -1), formats)
    gb = new("gw", hbfp.matmul.default, new("gw", aten.transpose.int, a, -2, -1), g, formats)
    _replace(node, ga, gb)


def _layer(node, names):
    """The layer of a parameter."""
    return names.get(node.name, "").rpartition(".")[0]


def _new(before, name, part, target, *args):
    """A node that stands before another, of a part of the step."""
    made = inserted(before, target, *args)
    call(made, part, name)
    return made


def _replace(node, *results):
    """Let users of a node's results use others."""
    for user in list(node.users):
        if user.target is operator.getitem:
            user.replace_all_uses_with(results[user.args[1]])


def _needed(nodes):
    found, left = set(), list(nodes)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes
    return found
