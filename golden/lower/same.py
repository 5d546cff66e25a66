"""Which operations give their operand as it is, and may be left out; and which give other numbers in every run."""

import math
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten
#: Copies of their first operand, where the type of number stays.
_COPIES = (aten.clone, aten.alias, aten.detach, aten.contiguous, aten.lift_fresh_copy, aten.to, aten._to_copy)
#: Operations that give another type of number.
CASTS = (aten.to.dtype, aten._to_copy.default)
_SOFTMAX = aten._softmax.default
#: Views of another shape.
_VIEWS = (aten.view.default, aten._unsafe_view.default)


def argument(node: fx.Node, name: str, default: Any = None) -> Any:
    """The value of a node's argument ``name``, given or not; ``default`` if its operation has no such argument."""
    for number, each in enumerate(node.target._schema.arguments):
        if each.name == name:
            given = node.args[number] if number < len(node.args) and not each.kwarg_only else None
            return node.kwargs.get(name, each.default_value if given is None else given)
    return default


def draws(node: fx.Node) -> bool:
    """Whether a node draws random numbers; dropout that is off does not."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    train = argument(node, "train", argument(node, "training", True))
    return train and argument(node, "p", 1) != 0


def shorten(graph: fx.Graph) -> None:
    """Take out nodes that give their operand as it is, copies and dropout that is off: their users take the operand.

    All nodes have their arguments by position afterwards, as far as their operations allow it. A view of another shape
    becomes a reshape, which may copy, since the copy that made the view possible may be gone.
    """
    for node in graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload):
            _by_place(node)
            if node.target in _VIEWS:
                node.target = aten.reshape.default
            if _same(node):
                node.replace_all_uses_with(node.args[0])
            if _same(node) or node.target == aten._assert_tensor_metadata.default:
                graph.erase_node(node)


def _by_place(node):
    places = [each for each in node.target._schema.arguments if not each.kwarg_only]
    last = max((number for number, each in enumerate(places) if each.name in node.kwargs), default=-1)
    rest = [node.kwargs.get(each.name, each.default_value) for each in places[len(node.args):last + 1]]
    names = {each.name for each in places}
    node.args, node.kwargs = (*node.args, *rest), {name: value for name, value in node.kwargs.items()
                                                   if name not in names}


def _same(node):
    packet = node.target.overloadpacket
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        found = "dropout" in packet.__name__ and not draws(node)
    else:
        found = packet in _COPIES
    return found and isinstance(node.meta["val"], torch.Tensor) and node.meta["val"].dtype == node.args[0].meta[
        "val"].dtype


def spared(node: fx.Node) -> tuple[fx.Node, fx.Node] | None:
    """The softmax and the mask of a node ``softmax(s, d).masked_fill((s == -inf).all(d, True), 0)``; None of any other.

    Such a node gives zeros for rows that are masked throughout. Without such a row it gives the softmax as it is.
    """
    if node.target != aten.masked_fill.Scalar or node.args[2] != 0 or node.args[0].target != _SOFTMAX:
        return None
    softmax, mask = node.args[:2]
    equal = _of_all(mask, softmax)
    if equal is None or equal.target != aten.eq.Scalar or equal.args != (softmax.args[0], -math.inf):
        return None
    return softmax, mask


def _of_all(mask, softmax):
    """Of what is true where all along a softmax's rows is, also as no row with one that is not: what; else None."""
    if mask.target == aten.all.dim:
        all_, inner = mask, mask.args[0]
    elif mask.target == aten.logical_not.default and mask.args[0].target == aten.any.dim and \
            mask.args[0].args[0].target == aten.logical_not.default:
        all_, inner = mask.args[0], mask.args[0].args[0].args[0]
    else:
        return None
    dims = inner.meta["val"].dim()
    along = argument(all_, "dim") % dims == softmax.args[1] % dims
    return inner if along and argument(all_, "keepdim") else None
