"""The gradients of products as products of their own, and sums over the batch.

A layer's are gx = g W and gw = g^T x, of all its rows; those of a stacked product y = a b are g b^T and a^T g. Those of
a convolution are two nodes of their own, too.
"""

import operator
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import fx

from hbfp.golden.nn.placed import Product, read

from ..graph import named
from ..operations.convolutions import weight_gradient
from ..reached import reached
from ..transposed import input_gradient
from .inserted import inserted

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
    forward = reached(graph.output_node().args[0][:1])
    for node in list(graph.nodes):
        part = "forward" if node in forward else "backward"
        call(node, part, node.meta.get(LAYER) or named(node))
        if node.target in (hbfp.linear.default, hbfp.conv2d.default):
            call(node, part, _layer(node.args[1], names))
        elif node.target == hbfp.linear_backward.default:
            _linear(node, _layer(node.args[2], names))
        elif node.target == hbfp.matmul_backward.default:
            _matmul(node)
        elif node.target == hbfp.conv2d_backward.default:
            _convolution(node, _layer(node.args[2], names))
        elif node.target == hbfp.add_bias_backward.default:
            g, bias = node.args
            node.replace_all_uses_with(_new(node, f"{_layer(bias, names)}.bias", part, aten.sum.dim_IntList, g,
                                            list(range(g.meta["val"].dim() - 1))))
        elif node.target == aten.ones.default and not node.args[0]:      # the gradient of the loss itself
            for user in [each for each in node.users if each.target == aten.mul.Tensor]:
                other = user.args[user.args[0] is node]
                if isinstance(other, fx.Node):
                    user.replace_all_uses_with(other)
        elif node.target in _LIKE:                         # which asks an operand for its shape alone
            node.target, node.args, node.kwargs = aten.full.default, (node.meta["val"].shape, _LIKE[node.target]), {}
        elif node.target == aten.constant_pad_nd.default and min(node.args[1]) < 0:
            _cropped(node)
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


def _linear(node, layer):
    g, x, w, formats, _ = node.args

    def rows(tensor, part):
        shape = tensor.meta["val"].shape
        return tensor if len(shape) == 2 else new(part, aten.reshape.default, tensor, [-1, shape[-1]])
    new = partial(_new, node, layer)
    gx = new("gx", hbfp.matmul.default, rows(g, "gx"), w, _text(formats, ("g", False), ("w", False)))
    if x.meta["val"].dim() != 2:
        gx = new("gx", aten.reshape.default, gx, list(x.meta["val"].shape))
    gw = new("gw", hbfp.matmul.default, new("gw", aten.t.default, rows(g, "gw")), rows(x, "gw"),
             _text(formats, ("g", True), ("x", False)))
    _replace(node, gx, gw)


def _matmul(node):
    g, a, b, formats, _ = node.args
    forward = next(user for user in a.users if user.target == hbfp.matmul.default and user.args[:2] == (a, b))
    new = partial(_new, node, forward.meta.get(LAYER) or named(forward))
    ga = new("gx", hbfp.matmul.default, g, new("gx", aten.transpose.int, b, -2, -1),
             _text(formats, ("g", False), ("w", True)))
    gb = new("gw", hbfp.matmul.default, new("gw", aten.transpose.int, a, -2, -1), g,
             _text(formats, ("x", True), ("g", False)))
    _replace(node, ga, gb)


def _convolution(node, layer):
    g, x, w, *options, needs = node.args
    made = [_new(node, layer, part, target, *args) if need else None for need, part, target, args in zip(
        needs, ("gx", "gw"), (input_gradient, weight_gradient),
        ((g, w, list(x.meta["val"].shape[2:]), *options), (g, x, list(w.meta["val"].shape), *options)), strict=True)]
    _replace(node, *made)


def _cropped(node):
    """Write views in place of a border of fewer than no pixels: the gradient of one."""
    x, sides = node.args[:2]
    for n in range(len(sides) // 2):
        before, behind = (-min(side, 0) for side in sides[2 * n:2 * n + 2])
        dim = x.meta["val"].dim() - 1 - n
        if before or behind:
            x = inserted(node, aten.narrow.default, x, dim, before, x.meta["val"].shape[dim] - before - behind)
    node.args = (x, [max(side, 0) for side in sides], *node.args[2:])
    if not any(node.args[1]):
        node.replace_all_uses_with(x)


def _text(formats, left, right):
    """Formats of a product whose operands are what a layer's have in roles, (role, whether turned) each."""
    own, product = read(formats)
    made = replace(own, x=getattr(own, left[0]), w=getattr(own, right[0]))
    if product is None:
        return made.text
    return Product(tuple((own_role, replace(product.role(role), turned=turned)) for own_role, (role, turned) in
                         zip(("x", "w"), (left, right), strict=True))).text(made)


def _layer(node, names):
    """The layer of a parameter, or of what a mask leaves of it."""
    if node.target == hbfp.sparse_weight.default:
        node = node.args[0]
    return names.get(node.name, "").rpartition(".")[0]


def _new(before, name, part, target, *args):
    """A node that stands before another, of a part of the step."""
    made = inserted(before, target, *args)
    call(made, part, name)
    return made


def _replace(node, *results):
    """Let users of a node's results use others."""
    for user in list(node.users):
        if user.target is operator.getitem and results[user.args[1]] is not None:
            user.replace_all_uses_with(results[user.args[1]])
