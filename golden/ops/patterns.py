"""Norms, softmax and gated units that a model has written by hand, recognised in its graph as one operation each.

Each program of one row has the bits of its parts (:mod:`golden.vector.programs` has the same steps in the same order),
so that what is recognised changes instructions and no number.
"""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from .gates import FUNCTIONS

aten = torch.ops.aten
_ADDS = (aten.add.Tensor, aten.add.Scalar)
Constant = Callable[[Any], bool]


def recognise(graph: fx.Graph, constant: Constant) -> None:
    """Put one operation where a graph has RMS norm, layer norm, softmax or a gated unit in parts.

    Parameters
    ----------
    graph : torch.fx.Graph
        Of core ATen, of which every node has users.
    constant : callable
        Says whether a node does not depend on the inputs.
    """
    for node in list(graph.nodes):
        for pattern in (_norm, _softmax, _gate):
            found = pattern(node, constant)
            if found is not None:
                last, target, args = found
                with graph.inserting_before(last):
                    made = graph.create_node("call_function", target, args, name=target.overloadpacket.__name__)
                    made.meta = {"nn_module_stack": last.meta.get("nn_module_stack")}
                    if len(target._schema.returns) > 1:
                        made = graph.call_function(operator.getitem, (made, 0))
                made.meta = dict(last.meta)
                last.replace_all_uses_with(made)
                break
    graph.eliminate_dead_code()


def _norm(node, constant):
    """``x * rsqrt(mean(x * x) + eps)``, of x as it is or without its mean; then a constant factor, and addend."""
    pairs = _pairs(node) if node.target == aten.mul.Tensor else ()
    for x, root in pairs:
        shifted = _parts(root, aten.rsqrt.default)
        mean, eps = _parts(shifted and shifted[0], *_ADDS) or (None, None)
        if not isinstance(eps, float) or not len(root.users) == len(root.args[0].users) == 1:
            continue
        centred = _centred(x)
        squares = _row(mean, aten.mean.dim)
        if len(mean.users) > 1 or not (squares is not None and _square(squares, x) or
                                       centred is not None and _variance(mean, centred)):
            continue
        n = x.meta["val"].shape[-1]
        last, weight = _behind(node, aten.mul.Tensor, n, constant)
        if centred is None:
            return last, aten._fused_rms_norm.default, (x, [n], weight, eps)
        end, bias = _behind(last, aten.add.Tensor, n, constant) if weight is not None else (last, None)
        if bias is None:                                   # + 0 would change the sign of a zero
            end, weight = node, None
        return end, aten.native_layer_norm.default, (centred, [n], weight, bias, eps)
    return None


def _softmax(node, constant):
    """``e / sum(e)`` of ``e = exp(x - amax(x))``."""
    exponential, total = _parts(node, aten.div.Tensor) or (None, None)
    if exponential is None or _row(total, aten.sum.dim_IntList) is not exponential or len(exponential.users) > 2:
        return None
    shifted = _parts(exponential, aten.exp.default)
    x, most = _parts(shifted and shifted[0], aten.sub.Tensor) or (None, None)
    if x is None or _row(most, aten.amax.default) is not x:
        return None
    return node, aten._softmax.default, (x, -1, False)


def _gate(node, constant):
    """``x * f(g)``, where nothing else takes ``f(g)`` and neither is constant."""
    for gate, x in _pairs(node) if node.target == aten.mul.Tensor else ():
        g, *options = _parts(gate, *FUNCTIONS) or (None,)
        if g is None or options or len(gate.users) > 1 or gate is x or constant(x) or constant(gate):
            continue
        if x.meta["val"].shape == gate.meta["val"].shape:
            return node, torch.ops.hbfp.gated.default, (x, g, FUNCTIONS[gate.target])
    return None


def _parts(node, *targets):
    """The arguments of a node of one of these operations; None of anything else."""
    return node.args if isinstance(node, fx.Node) and node.target in targets and not node.kwargs else None


def _pairs(node):
    a, b = node.args
    return [pair for pair in ((a, b), (b, a)) if all(isinstance(each, fx.Node) for each in pair)]


def _row(node, target):
    """The operand of an operation along rows, which stay rows of one number; None of anything else."""
    x, *rest = _parts(node, target) or (None,)
    if x is None or len(rest) != 2 or not rest[1]:
        return None
    return x if [d % x.meta["val"].dim() for d in rest[0]] == [x.meta["val"].dim() - 1] else None


def _square(node, x):
    """Whether a node is ``x * x``, for one use."""
    return len(node.users) == 1 and (_parts(node, aten.mul.Tensor) == (x, x) or
                                 _parts(node, aten.pow.Tensor_Scalar) == (x, 2))


def _centred(node):
    """x of ``x - mean(x)``."""
    x, mean = _parts(node, aten.sub.Tensor) or (None, None)
    return x if x is not None and _row(mean, aten.mean.dim) is x else None


def _variance(node, x):
    """Whether a node is the variance of the rows of x."""
    along = isinstance(node, fx.Node) and node.target == aten.var.correction and node.args == (x, [-1])
    return along and node.kwargs.get("correction") == 0 and node.kwargs.get("keepdim")


def _behind(node, target, n, constant):
    """The product or sum of a node and n constant numbers, which alone uses it, and those; or the node, and None."""
    users = list(node.users)
    if len(users) == 1 and _parts(users[0], target) and len(users[0].args) == 2:
        for one, other in _pairs(users[0]):
            if one is node and constant(other) and tuple(other.meta["val"].shape) == (n,):
                return users[0], other
    return node, None
