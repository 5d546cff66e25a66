"""The gradients of a layer's product as products of their own: gx = g W and gw = g^T x, and sums over the batch.

Those of a convolution are two nodes of their own, too.
"""

import operator
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import fx

from hbfp.golden.nn.placed import Product, read

from ..errors import LoweringError
from ..graph import named
from ..operations.convolutions import input_gradient, weight_gradient

#: The name under which a node keeps the layer that called it.
LAYER = "hbfp_layer"
hbfp, aten = torch.ops.hbfp, torch.ops.aten
#: Tensors of one number in the shape of another -> the number.
_LIKE = {aten.ones_like.default: 1.0, aten.zeros_like.default: 0.0}


def take_apart(graph: fx.Graph, names: Mapping[str, str]) -> None:
    """Write products and sums in place of the operators that autograd calls.

    Nodes get the part of the step that they belong to, and the layer, as the name of their module. An operand of a
    gradient's product keeps the format, and the numbers that it draws, of what it is to the layer.

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
        if node.target in (hbfp.linear.default, hbfp.conv2d.default):
            call(node, part, _layer(node.args[1], names))
        elif node.target == hbfp.linear_backward.default:
            _linear(graph, node, _layer(node.args[2], names))
        elif node.target == hbfp.conv2d_backward.default:
            _convolution(graph, node, _layer(node.args[2], names))
        elif node.target == hbfp.add_bias_backward.default:
            g, _, bias, _ = node.args
            with graph.inserting_before(node):
                total = _new(graph, node, 1, aten.sum.dim_IntList, (g, [0]))
            call(total, part, f"{_layer(bias, names)}.bias")
            _replace(node, g, total)
        elif node.target == aten.ones.default and not node.args[0]:      # the gradient of the loss itself
            for user in [each for each in node.users if each.target == aten.mul.Tensor]:
                user.replace_all_uses_with(user.args[0] if user.args[1] is node else user.args[1])
        elif node.target in _LIKE:                         # which asks an operand for its shape alone
            node.target, node.args, node.kwargs = aten.full.default, (node.meta["val"].shape, _LIKE[node.target]), {}
        elif node.target == aten.constant_pad_nd.default and min(node.args[1]) < 0:
            _cropped(graph, node)
    graph.eliminate_dead_code()


def changed(graph: fx.Graph) -> None:
    """Let numbers that a layer changes in place be results: what a buffer becomes is what is copied to it."""
    for node in list(graph.nodes):
        if node.target == aten.copy_.default:
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)


def call(node: fx.Node, part: str, name: str) -> None:
    """Say which part of the step a node belongs to, and what it is of there."""
    node.meta["nn_module_stack"] = {"": (f"{part} {name}", None)}


def _linear(graph, node, layer):
    g, x, w, formats, _ = node.args
    if len(x.meta["val"].shape) != 2:
        raise LoweringError(f"Layer {layer!r} (linear) cannot be lowered: its input has {len(x.meta['val'].shape)} "
                            "dimensions; rows (N, K) would do")
    with graph.inserting_before(node):
        gx = _new(graph, node, 0, hbfp.matmul.default, (g, w, _text(formats, "g", "w")))
        turned = graph.call_function(aten.t.default, (g,))
        turned.meta["val"] = g.meta["val"].t()
        gw = _new(graph, node, 1, hbfp.matmul.default, (turned, x, _text(formats, "g", "x", True)))
    for made, part in ((gx, "gx"), (turned, "gw"), (gw, "gw")):
        call(made, part, layer)
    _replace(node, gx, gw)


def _convolution(graph, node, layer):
    g, x, w, *options, needs = node.args
    with graph.inserting_before(node):
        made = [_new(graph, node, number, target, args) if needs[number] else None for number, (target, args) in
                enumerate(((input_gradient, (g, w, list(x.meta["val"].shape[2:]), *options)),
                           (weight_gradient, (g, x, list(w.meta["val"].shape), *options))))]
    for each, part in zip(made, ("gx", "gw"), strict=True):
        if each is not None:
            call(each, part, layer)
    _replace(node, *made)


def _cropped(graph, node):
    """Write views in place of a border of fewer than no pixels: the gradient of one."""
    x, sides = node.args[:2]
    shape, call_ = list(x.meta["val"].shape), node.meta["nn_module_stack"]
    with graph.inserting_before(node):
        for n in range(len(sides) // 2):
            before, behind = (-min(side, 0) for side in sides[2 * n:2 * n + 2])
            dim = len(shape) - 1 - n
            if before or behind:
                shape[dim] -= before + behind
                x = graph.call_function(aten.narrow.default, (x, dim, before, shape[dim]))
                x.meta |= {"val": node.meta["val"].new_empty(shape), "nn_module_stack": call_}
    node.args = (x, [max(side, 0) for side in sides], *node.args[2:])
    if not any(node.args[1]):
        node.replace_all_uses_with(x)


def _text(formats, left, right, turned=False):
    """Formats of a product whose operands are what a layer's formats have in two roles, the left one turned or not."""
    own, product = read(formats)
    made = replace(own, x=getattr(own, left), w=getattr(own, right))
    if product is None:
        return made.text
    draws = ("x", replace(product.role(left), turned=turned)), ("w", product.role(right))
    return Product(draws).text(made)


def _layer(node, names):
    """The layer of a parameter."""
    return names.get(node.name, "").rpartition(".")[0]


def _new(graph, node, number, target, args):
    made = graph.call_function(target, args)
    made.meta["val"] = node.meta["val"][number]
    return made


def _replace(node, *results):
    """Let users of a node's results use others."""
    for user in list(node.users):
        if user.target is operator.getitem and results[user.args[1]] is not None:
            user.replace_all_uses_with(results[user.args[1]])


def _needed(nodes):
    found, left = set(), list(nodes)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes
    return found
