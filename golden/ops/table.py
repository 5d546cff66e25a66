"""The table of operations, which PyTorch's side, the lowering and the tracer of pods read."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import fx

from . import (
    activations,
    bags,
    choices,
    distances,
    drops,
    elements,
    enlarged,
    extremes,
    gates,
    gradients,
    losses,
    moves,
    norms,
    pools,
    powers,
    rows,
    truths,
    volumes,
    whole,
    windows,
)
from .matrices import multiplies
from .operation import Operation

OPERATIONS: tuple[Operation, ...] = (*elements.OPERATIONS, *rows.OPERATIONS, *windows.OPERATIONS, *moves.OPERATIONS,
                                     *losses.OPERATIONS, *distances.OPERATIONS, *activations.OPERATIONS,
                                     *gates.OPERATIONS, *choices.OPERATIONS, *drops.OPERATIONS, *norms.OPERATIONS,
                                     *pools.OPERATIONS, *gradients.OPERATIONS,
                                     *extremes.OPERATIONS, *powers.OPERATIONS, *enlarged.OPERATIONS,
                                     *truths.OPERATIONS, *whole.OPERATIONS, *volumes.OPERATIONS,
                                     *bags.OPERATIONS)
#: Torch's own decompositions, kept since to collect them takes a tenth of a second.
_usual = cache(torch.export.default_decompositions)
_BY_CALL = {call: each for each in OPERATIONS for call in each.calls}


def operation_of(function: Any) -> Operation | None:
    """The operation of an overload of torch or its packet; None if the table has none."""
    return _BY_CALL.get(getattr(function, "overloadpacket", function))


def parts() -> dict[Any, Callable[..., Any]]:
    """Overload -> how to compute it by other operations where it has no program of its own."""
    return {getattr(call, name): each.apart for each in OPERATIONS if each.parts for call in each.calls
            for name in call.overloads()}


def decompositions(graph: fx.Graph, again: bool = False) -> dict[Any, Callable[..., Any]] | None:
    """The table of ``run_decompositions`` for a graph, overload -> function; None if there is nothing to do.

    Operations with parts are taken apart, and so are those that the table lacks and torch makes of others
    (``layer_norm`` of ``native_layer_norm``). Products and what draws random numbers stay whole. A graph that has been
    taken apart may have some of the latter anew, ``again``.
    """
    own = parts()
    targets = {node.target for node in graph.nodes}
    composite = set(filter(_composite, targets))
    if not composite and (again or targets.isdisjoint(own)):
        return None
    usual = _usual()
    return {each: usual[each] for each in composite if each in usual} | own


def _composite(target):
    """Whether torch makes an operation of others, and the table does not have it; views aside."""
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return False
    views = any(each.alias_info is not None for each in target._schema.returns)
    return (target._can_decompose() and not views and operation_of(target) is None and not multiplies(target)
            and torch.Tag.nondeterministic_seeded not in target.tags)
