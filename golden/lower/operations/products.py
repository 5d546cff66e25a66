"""Linear layers and products of matrices."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from hbfp.golden.nn.placed import stacked
from hbfp.golden.vector import programs
from hbfp.program import Product

from ..errors import LoweringError
from ..memory import Value
from ..nodes import Made, Nodes
from ..products.draw import draws
from ..products.matrix import matrix
from ..products.weights import computed_weights, constant_weights, sparse_weights
from ..products.wide import Wide, widths
from .after import steps_after
from .steps import steps_behind
from .vector import elementwise

hbfp = torch.ops.hbfp
#: Rows of X, in rows of the array, up to which a constant sparse weight is not worth its conversion.
FEW = 2


def linear(net: Nodes, node: Any) -> Made:
    """``x W^T`` of x (..., K) and W (N, K), which is constant or computed."""
    x, w, text = node.args
    wide = widths(text, net.build.accelerator)
    value = net.value(x)
    of_x, of_w = draws(text, "x", "w")
    steps, last = steps_behind(net, node, -1)
    result = net.graph.results[node]
    order = list(range(result.dim()))
    after, last = steps_after(net, last, order)
    rows, constant = result.numel() // result.shape[-1], net.is_constant(w)
    if constant and of_w is not None:
        raise LoweringError("its weight is constant and would be rounded stochastically; a trained one would do")
    drawn, weights = of_w and replace(of_w, turned=True), None
    if sparse(net, w, rows, wide):
        weights = sparse_weights(net.build.dram.constant(net.constant(w).numpy()) if constant else net.value(w),
                                 net.build, drawn, wide)
    if weights is None and constant:
        weight = net.constant(w).numpy().T
        weights = constant_weights(net.build, weight, len(weight), wide)
    elif weights is None:
        computed = net.value(w)
        weights = computed_weights(Value(computed.where.t(), computed.home), net.build.lanes, drawn, wide,
                                   _is_pruned(w))
    matrix(net.build, value, weights, steps, net.fresh(last, order), after, of_x)
    return last, (Product(rows, weights.terms, weights.columns),)


def sparse(net: Nodes, w: Any, rows: int, wide: Wide) -> bool:
    """Whether the weight (N, K) or (O, C, kh, kw) of a product with so many rows is to be multiplied as a sparse one:
    the core has such commands, it is one, and that is quicker.

    A weight that is constant comes as records if it is dense, and else as FP32 that is converted: with few rows of X
    that takes longer. So it does if it is narrow beside wide rows, which only records can be.
    """
    machine, constant = net.accelerator, net.is_constant(w)
    if not machine.core.takes_sparse or _is_pruned(w):
        return machine.core.takes_sparse
    if not (constant or w.target == hbfp.kept.default) or constant and (
            rows <= FEW * machine.core.rows or wide.x > wide.w):
        return False
    kept, group = machine.core.sparse
    given = net.constant(w) if constant else net.graph.results[w.args[0]]
    given = given.movedim(1, -1).flatten(1)                # K along taps and then channels
    groups = torch.nn.functional.pad(given != 0, (0, -given.shape[1] % group)).unflatten(1, (-1, group))
    return bool(groups.sum(-1).max() <= kept)


def _is_pruned(w):
    """Whether an operand is to be pruned as it is converted."""
    return w.target == hbfp.pruned.default


def pruned(net: Nodes, node: Any) -> Made:
    """A weight that is pruned where it is converted: it lies where it lies before."""
    net.values[node] = net.value(node.args[0])
    return node, ()


def matmul(net: Nodes, node: Any) -> Made:
    """Products of a (..., M, K) and b (..., K, N): one for each place of the dimensions before the last two."""
    a, b = (net.value(each) for each in node.args[:2])
    steps, last = steps_behind(net, node, -1)
    order = list(range(len(a.shape)))
    after, last = steps_after(net, last, order)
    of_a, of_b = draws(node.args[2], "x", "w")
    prunes = _is_pruned(node.args[1])
    wide = widths(node.args[2], net.build.accelerator)
    turned = of_a is of_b is None and wide.x == wide.w and not prunes and _is_turned(net, node)
    output = net.fresh(last, [*order[:-2], *reversed(order[-2:])] if turned else order)
    for number, place_ in enumerate(np.ndindex(*a.shape[:-2])):
        left, right, own = (Value(each.where[place_], each.home) for each in (a, b, output))
        if turned:                                         # b^T a^T is the transpose, of the same sums
            left, right, own = (Value(each.where.t(), each.home) for each in (right, left, own))
        weights = computed_weights(right, net.build.lanes, stacked(of_b, number, b.shape), wide, prunes)
        matrix(net.build, left, weights, steps, own, after.part(place_), stacked(of_a, number, a.shape))
        net.build.forget()
    return last, (Product(a.shape[-2], a.shape[-1], b.shape[-1], int(np.prod(a.shape[:-2], dtype=np.int64))),)


def _is_turned(net, node):
    """Whether all that reads stacked matrices is their transpose, which then is to lie row by row."""
    user = net.only_user(node)
    dims = net.graph.results[node].dim()
    return user is not None and user.target == torch.ops.aten.transpose.int and {
        each % dims for each in user.args[1:]} == {dims - 2, dims - 1}


def add_bias(net: Nodes, node: Any) -> Made:
    """The sum of a product and a bias that the core has not added."""
    return elementwise(net, node, programs.add(), *(net.value(each) for each in node.args))
