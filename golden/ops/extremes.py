"""The largest and smallest: of two tensors, along dimensions, and of everything.

Over several dimensions that no program takes at once they are found one after the other, the last first; of a long
one in pieces of as many numbers as a window has.
"""

from math import prod
from typing import Any

import torch

from ..vector import programs
from .borders import LONGEST
from .operation import Elements, Operation, Rows, Shape, Unsupported, Windows, calls, dims_of
from .results import Result
from .windows import pixels

aten = torch.ops.aten


def _most(x, dim=None, keepdim=False):
    over = dims_of(x, dim)
    if over == (x.dim() - 1,):
        return Rows(programs.row_maximum(), (x,), results=(Result(True, keep=keepdim),))
    window = pixels(x, over)
    if window is None:
        raise Unsupported(f"it is over dimensions {list(over)} of {x.dim()}, one after the other")
    return Windows(programs.maximum(prod(window)), (x,), window, window, over=over, keep=keepdim)


def _most_parts(x, dim=None, keepdim=False):
    over = dims_of(x, dim)
    if not over:
        return x
    y = x
    for d in reversed(over):
        y = _along(y, d)
    return y if keepdim else y.squeeze(over)


def _along(x, dim):
    """The maximum along one dimension: of pieces of it, or of rows where it is none of pixels."""
    if x.shape[dim] > LONGEST and dim < x.dim() - 1:
        first, *more = (aten.amax(each, [dim], True) for each in x.split(LONGEST, dim))
        for each in more:
            first = torch.maximum(first, each)
        return first
    if dim == x.dim() - 1 or pixels(x, (dim,)):
        return aten.amax(x, [dim], True)
    return aten.amax(x.movedim(dim, -1), [-1], True).movedim(-1, dim)


def _least(x, dim=None, keepdim=False):
    return -aten.amax(-x, list(dims_of(x, dim)), keepdim)


def _of(whole, larger, place, name):
    """``max`` or ``min``: of everything, of two tensors, or along a dimension, with the places."""
    def parts(x, other=None, keepdim=False):
        if isinstance(other, torch.Tensor):
            return larger(x, other)
        if other is None:
            return whole(x, [], False)
        return whole(x, [other], keepdim), place(x, other, keepdim)
    return Operation(name, calls(name), Shape.PARTS, parts=parts)


def bounded(x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
    """``clamp`` by tensors: the larger of it and ``low``, then the smaller of that and ``high``."""
    y = x if low is None else torch.maximum(x, low)
    return y if high is None else torch.minimum(y, high)


OPERATIONS: tuple[Operation, ...] = (
    Operation("maximum", calls("maximum"), Shape.ELEMENT, lambda x, y: Elements(programs.maximum(2), (x, y))),
    Operation("minimum", calls("minimum"), Shape.ELEMENT, lambda x, y: Elements(programs.smaller(), (x, y))),
    Operation("amax", calls("amax"), Shape.ROW, _most, _most_parts),
    Operation("amin", calls("amin"), Shape.PARTS, parts=_least),
    _of(aten.amax, torch.maximum, torch.argmax, "max"), _of(aten.amin, torch.minimum, torch.argmin, "min"))
