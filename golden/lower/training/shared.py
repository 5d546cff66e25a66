"""Which inputs of two models of a job are one: those of the same batch, and what follows from it alike."""

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ..graph import Graph


def same(one: fx.Node, graph: Graph, other: fx.Node, its: Graph) -> bool:
    """Whether inputs of two captures, each with its graph, have the same numbers for each batch that both get.

    A host computes some of them, from whole numbers of the batch; then by the same functions of the same numbers.
    """
    a, b = graph.results[one], its.results[other]
    if one.op != other.op or a.shape != b.shape or a.dtype != b.dtype:
        return False
    match one.op:
        case "placeholder":
            return a.is_meta or torch.equal(a, b)
        case "get_attr":
            return torch.equal(a, b)
    return one.target == other.target and _alike((one.args, one.kwargs), graph, (other.args, other.kwargs), its)


def follows(node: fx.Node, graph: Graph, twins: dict[fx.Node, fx.Node], its: Graph) -> bool:
    """Whether a node's result follows from what is one in both, ``twins``, by what the other graph does, too.

    If so it becomes one of these, beside the node there.
    """
    other = next((each for each in its.nodes if each.name == node.name), None)

    def alike(one, another):
        if isinstance(one, fx.Node) and isinstance(another, fx.Node):
            if one in graph.constants and another in its.constants:
                a, b = graph.results[one], its.results[another]
                return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)
            return twins.get(one) is another
        return _equal(one, another, alike)
    if other is None or other.target != node.target or not any(each in twins for each in node.all_input_nodes):
        return False
    found = alike((node.args, dict(node.kwargs)), (other.args, dict(other.kwargs)))
    if found:
        twins[node] = other
    return found


def _alike(one: Any, graph: Graph, other: Any, its: Graph) -> bool:
    if isinstance(one, fx.Node) and isinstance(other, fx.Node):
        return same(one, graph, other, its)
    return _equal(one, other, lambda a, b: _alike(a, graph, b, its))


def _equal(one: Any, other: Any, alike: Callable[[Any, Any], bool]) -> bool:
    """Whether arguments are equal, of which those within others are compared so."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)
