"""Views: operations that give other shapes and strides of what lies in DRAM, and do nothing else."""

import operator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .errors import NO_OPERATION, LoweringError
from .memory import Value, shares

aten = torch.ops.aten
#: Views that go by an element's place in the shape alone, not by where it lies or what it is.
_BY_PLACE = {each for packet in (aten.view, aten.reshape, aten._unsafe_view, aten.permute, aten.transpose, aten.t,
                                 aten.expand, aten.slice, aten.select, aten.squeeze, aten.unsqueeze, aten.split,
                                 aten.split_with_sizes, aten.unbind, aten.alias, aten.detach)
             for each in (getattr(packet, name) for name in packet.overloads()) if each != aten.view.dtype}


def is_view(target: Any) -> bool:
    """Whether an operation gives a view of its first operand where strides can say it, and a copy elsewhere."""
    if target in (operator.getitem, torch.ops.aten._unsafe_view.default):
        return True
    returned = target._schema.returns if isinstance(target, torch._ops.OpOverload) else []
    return bool(returned) and returned[0].alias_info is not None and not returned[0].alias_info.is_write


def seen(target: Any, args: Any, options: Any, source: Value, operand: torch.Tensor) -> Any:
    """The view of a value, or a list of views.

    Parameters
    ----------
    target
        The operation; ``args`` and ``options`` are its arguments behind the first operand.
    source : Value
        Where the first operand lies in DRAM.
    operand : Tensor
        The first operand in PyTorch.

    Raises
    ------
    RuntimeError
        If the result is no view of what lies there.
    LoweringError
        If the operation does more than give the elements another order and shape.
    """
    found = target(source.where, *args, **options)
    parts = list(found) if isinstance(found, (tuple, list)) else [found]
    if not all(shares(part, source.where) for part in parts):
        raise RuntimeError("a copy")
    if target in _BY_PLACE:
        made = [Value(part, source.home) for part in parts]
        return made if isinstance(found, (tuple, list)) else made[0]
    numbers = target(_numbered(operand), *args, **options)
    places = addresses(source.where).ravel()
    for part, each in zip(parts, numbers if isinstance(found, (tuple, list)) else [numbers], strict=True):
        if each.dtype != torch.float64 or not _reads(each.resolve_neg().numpy(), places, addresses(part)):
            raise LoweringError(NO_OPERATION)
    made = [Value(part, source.home) for part in parts]
    return made if isinstance(found, (tuple, list)) else made[0]


def _reads(numbers, places, addresses):
    """Whether elements of such numbers, of an operand at ``places``, are what lies at ``addresses``."""
    return numbers.min(initial=0) >= 0 and np.array_equal(places[numbers.astype(np.int64)], addresses)


def _numbered(operand):
    """An operand whose elements are their own numbers from 0 on, with its strides if no two elements share memory.

    What lies between the elements is -1.
    """
    count = operand.numel()
    if len(np.unique(addresses(operand))) < count:
        return torch.arange(count, dtype=torch.float64).view(operand.shape)
    room = operand.untyped_storage().nbytes() // operand.element_size()
    numbers = torch.full((room,), -1.0, dtype=torch.float64)
    numbers = numbers.as_strided(operand.size(), operand.stride(), operand.storage_offset())
    return numbers.copy_(torch.arange(count, dtype=torch.float64).view(operand.shape))


def addresses(where: torch.Tensor) -> NDArray[np.int64]:
    """The address of each element of a tensor without values (:func:`golden.lower.memory.located`)."""
    found = np.full((1,) * where.dim(), where.storage_offset(), np.int64)
    for d, (size, stride) in enumerate(zip(where.shape, where.stride(), strict=True)):
        found = found + (np.arange(size) * stride).reshape(-1, *(1,) * (where.dim() - 1 - d))
    return found
