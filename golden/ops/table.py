"""The table of operations, which PyTorch's side, the lowering and the tracer of pods read."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import fx

from . import elements, gates, gradients, losses, moves, norms, pools, rows, windows
from .matrices import multiplies
from .operation import Operation

OPERATIONS: tuple[Operation, ...] = (*elements.OPERATIONS, *rows.OPERATIONS, *windows.OPERATIONS, *moves.OPERATIONS,
                                     *losses.OPERATIONS, *gates.OPERATIONS, *norms.OPERATIONS, *pools.OPERATIONS,
                                     *gradients.OPERATIONS)
#: Torch's own, a tenth of a second.
_usual = cache(torch.export.default_decompositions)
_BY_CALL = {call: each for each in OPERATIONS for call in each.calls}


def operation_of(function: Any) -> Operation | None:
    """The operation that an overload of torch, or its packet, is of; None if the table has none."""
    return _BY_CALL.get(getattr(function, "overloadpacket", function))


def parts() -> dict[Any, Callable[..., Any]]:
    """Overloads that are made of other operations where they have no program of their own, and how."""
    return {getattr(call, name): each.apart for each in OPERATIONS if each.parts for call in each.calls
            for name in call.overloads()}


def decompositions(graph: fx.Graph) -> dict[Any, Callable[..., Any]] | None:
    """What ``run_decompositions`` shall do with a graph's operations; None if there is nothing to do.

    Those of other operations are taken apart, and what the table does not have but torch itself makes of others
    (``layer_norm`` of ``native_layer_norm``). Products and what draws stay whole.
    """
    own = parts()
    targets = {node.target for node in graph.nodes}
    composite = set(filter(_composite, targets))
    if not composite and targets.isdisjoint(own):
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
