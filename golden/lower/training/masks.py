"""Masks in a step: what they choose is chosen by gates, rows of ones and zeros, which a host makes of a batch's.

A mask must follow from constants and the whole numbers and truths of a batch; what real numbers decide is refused when
it is lowered. golden.nn's attention asks whether a row of scores is -inf throughout, and gives zeros there. Here the
masks say that: scores themselves are not taken for -inf.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import fx

from hbfp.golden.ops.operation import Shape
from hbfp.golden.ops.table import operation_of

from ..same import argument
from .inserted import inserted

aten, hbfp = torch.ops.aten, torch.ops.hbfp
_FILLS = (aten.masked_fill.Scalar, aten.masked_fill.Tensor)
Make = Callable[..., fx.Node]


def by_gates(module: fx.GraphModule, known: Mapping[fx.Node, torch.Tensor]) -> None:
    """Write ``choose`` and ``select`` of gates in place of ``masked_fill`` and ``where`` of real numbers.

    What fills nothing is left out, by a mask that follows from constants: those of the graph, and placeholders that
    are ``known`` as the same in every step, such as buffers.
    """
    def fixed(mask):
        return _fixed(module, known, mask)
    for write in (_throughout, _fills):
        real = _real(module.graph, known)
        for node in list(module.graph.nodes):
            made = write(node, real, partial(inserted, node), fixed) if node in real else None
            if made is not None:
                node.replace_all_uses_with(made)
                real.add(made)
        module.graph.eliminate_dead_code()


def _real(graph, known):
    """The nodes that real numbers of a batch decide, and those that the accelerator computes from others of it."""
    real, whole = set(), set()
    for node in graph.nodes:
        if node in known:
            continue
        if node.op == "placeholder":
            (real if node.meta["val"].is_floating_point() else whole).add(node)
        elif not real.isdisjoint(node.all_input_nodes):
            real.add(node)
        elif not whole.isdisjoint(node.all_input_nodes):
            (real if computes(node) else whole).add(node)
    return real


def _throughout(node, real, make, fixed):
    """Whether masks have made all of a row of scores -inf, in place of whether they are."""
    if node.target != aten.all.dim or node.args[0].target != aten.eq.Scalar or node.args[0].args[1] != -math.inf:
        return None
    scores = node.args[0].args[0]
    blocked = _blocked(scores, real, make)
    if blocked is None:
        return make(aten.zeros.default, list(node.meta["val"].shape), dtype=torch.bool)
    return make(aten.all.dim, make(aten.expand.default, blocked, list(scores.meta["val"].shape)), *node.args[1:])


def _fills(node, real, make, fixed):
    if node.target in _FILLS and node.args[1] not in real:
        mask = fixed(node.args[1])
        return node.args[0] if mask is not None and not mask.any() else _filled(*node.args, real, make)
    if node.target == aten.where.self and node.args[0] not in real:
        return _where(*node.args, real, make)
    return None


def computes(node: fx.Node) -> bool:
    """Whether a node is an operation on real numbers that has a program: the accelerator's, whatever it is of."""
    operation, given = operation_of(node.target), node.meta.get("val")
    real = not isinstance(given, torch.Tensor) or given.is_floating_point()
    chooses = node.target == aten.where.self               # of what a host knows by that host
    return operation is not None and operation.shape != Shape.MOVE and real and not chooses


def _fixed(module, known, mask):
    """The truths of a mask that follows from constants alone; None of any other."""
    def value(node):
        if node in known or node.op == "get_attr":
            return known[node] if node in known else getattr(module, node.target)
        return node.target(*fx.node.map_arg(node.args, value), **fx.node.map_arg(node.kwargs, value))
    above, left = set(), [mask]
    while left:
        node = left.pop()
        if node.op == "placeholder" and node not in known:
            return None
        left += [each for each in node.all_input_nodes if each not in above]
        above.add(node)
    return value(mask)


def _blocked(scores, real, make):
    """Where masks have made scores -inf, as a tensor of truths; None if nothing has."""
    if scores not in real:
        return make(aten.eq.Scalar, scores, -math.inf)
    if scores.target == aten.masked_fill.Scalar and scores.args[2] == -math.inf and scores.args[1] not in real:
        own, parts = [scores.args[1]], scores.args[:1]
    elif scores.target == aten.add.Tensor and argument(scores, "alpha") == 1:
        own, parts = [], [each for each in scores.args if isinstance(each, fx.Node)]
    else:
        return None
    for each in parts:
        found = _blocked(each, real, make)
        own += [] if found is None else [found]
    while len(own) > 1:
        own[:2] = [make(aten.logical_or.default, *own[:2])]
    return own[0] if own else None


def _filled(x, mask, number, real, make):
    """``masked_fill``."""
    if isinstance(number, fx.Node) and number in real:
        return _where(mask, number, x, real, make)
    if not isinstance(number, fx.Node):
        number = make(aten.scalar_tensor.default, number, dtype=torch.float32)
    return _chosen(make(aten.logical_not.default, mask), x, mask, number, make)


def _where(mask, x, other, real, make):
    """``where`` of tensors of which one or both are real."""
    if other not in real:
        return _chosen(mask, x, make(aten.logical_not.default, mask), other, make)
    if x not in real:
        return _chosen(make(aten.logical_not.default, mask), other, mask, x, make)
    return make(hbfp.select.default, _gate(mask, make), x, other)


def _chosen(mask, x, rest, other, make):
    """``x`` where ``mask`` is true, ``other``, which no real number decides, where ``rest`` is.

    ``choose`` would add +0 to ``other``, and so is for numbers other than -0.
    """
    number = other.args[0] if other.target == aten.scalar_tensor.default else -0.0
    if math.copysign(1, number) < 0 and number == 0:
        return make(hbfp.select.default, _gate(mask, make), x, other)
    nothing = make(aten.scalar_tensor.default, -0.0, dtype=torch.float32)
    return make(hbfp.choose.default, _gate(mask, make), x, make(aten.where.self, rest, other, nothing))


def _gate(mask, make):
    return make(aten._to_copy.default, mask, dtype=torch.float32)
