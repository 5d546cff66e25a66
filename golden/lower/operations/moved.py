"""Operations that give numbers of their operands other places, whatever these are: as few copies of boxes as there are.

Torch itself says which number goes where: it runs the operation on tensors whose elements are their own numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx

from .. import vectors
from ..errors import LoweringError
from ..graph import is_real
from ..memory import Value
from ..nodes import Made, Nodes
from ..views import addresses

#: Most places from one number of a box to the next along a dimension.
_STEP = 64


@dataclass(frozen=True)
class Box:
    """Numbers that lie as loops say, where they come from and where they go to.

    Attributes
    ----------
    target : tuple of slice
        Its places in the result, along each dimension.
    first : int
        The address of its first number, before.
    steps : tuple of int
        How far the next one is along each dimension.
    """
    target: tuple[slice, ...]
    first: int
    steps: tuple[int, ...]


def moved(net: Nodes, node: Any) -> Made:
    """Copy numbers to where an operation puts them; what it puts between them is there before the program runs.

    Raises
    ------
    LoweringError
        If it puts several numbers between those of its operands, or where it puts them depends on real numbers.
    """
    if not all(is_real(net.graph.results[each]) or net.is_constant(each) for each in node.all_input_nodes):
        raise LoweringError("its places depend on real numbers; whole numbers among the inputs would do")
    operands = [each for each in node.all_input_nodes if is_real(net.graph.results[each])]
    numbers, between = _numbers(net, node, operands)
    if len(between) > 1:
        raise LoweringError(f"it gives {len(between)} numbers that are not its operands'; one would do")
    output = net.fresh(node, filled=between.pop() if between else 0.0)
    values = [net.value(each) for each in operands]
    places = np.concatenate([addresses(each.where).ravel() for each in values])
    owners = np.repeat(np.arange(len(values)), [each.where.numel() for each in values])
    order = vectors.physical(output)
    where = output.where.permute(order)
    numbers = numbers.transpose(order)
    for owner, value in enumerate(values):
        own = np.where((numbers >= 0) & (owners[numbers] == owner), places[numbers], -1)
        for box in boxes(own):
            target = where[box.target]
            source = value.where.as_strided(target.shape, box.steps, box.first)
            if target.dim() and target.stride(-1) != 1:    # rows of one number each
                source, target = source.unsqueeze(-1), target.unsqueeze(-1)
            net.copy(Value(source, value.home), Value(target, output.home))
    return node, ()


def _numbers(net, node, operands):
    """Which number of all operands each element of the result is, -1 of none; and the numbers that stand there."""
    total, found = 0, []
    for shift in (0, 1):                                   # what stays as it is comes from no operand
        total, given = 0, {}
        for each in operands:
            result = net.graph.results[each]
            own = torch.arange(total, total + result.numel(), dtype=torch.float64)
            given[each] = (own + shift * (1 << 40)).reshape(result.shape)
            total += result.numel()
        args, options = fx.node.map_arg((node.args, node.kwargs), lambda each, given=given: (
            given[each] if each in given else net.graph.results[each]))
        found.append(node.target(*args, **options).numpy())
    one, other = found
    fixed = (one == other) | np.isnan(one)
    numbers = np.where(fixed, -1, np.where(fixed, 0, one).astype(np.int64))
    apart = (other - one)[~fixed] != 1 << 40
    if apart.any() or (numbers >= total).any() or (numbers != np.where(fixed, -1, one)).any():
        raise LoweringError("it computes; numbers that are only moved would do")
    return numbers, set(np.unique(one[fixed]).tolist())


def boxes(places: NDArray[np.int64]) -> Iterator[Box]:
    """What loops over addresses give an array; of its numbers below 0 nothing.

    Parameters
    ----------
    places : ndarray of int64
        The address of each element of a result.
    """
    yield from _cut(places, tuple(slice(0, size, 1) for size in places.shape))


def _cut(places, target):
    there = places >= 0
    if not there.any():
        return
    steps = _steps(places) if there.all() else None
    if steps is not None:
        yield Box(target, int(places.flat[0]), steps)
        return
    found = [_parts(places, there, dim) for dim in range(places.ndim)]
    dim = min((d for d in range(places.ndim) if len(found[d]) > 1), key=lambda d: len(found[d]))
    for start, stop, step in found[dim]:
        own = slice(target[dim].start + start * target[dim].step, target[dim].start + (stop - 1) * target[dim].step + 1,
                    step * target[dim].step)
        yield from _cut(places[(slice(None),) * dim + (slice(start, stop, step),)],
                        (*target[:dim], own, *target[dim + 1:]))


def _steps(places):
    """From element to element along each dimension, if that is the same everywhere and nowhere back; else None."""
    first = places[(0,) * places.ndim]
    steps = [int(places[(0,) * d + (1,) + (0,) * (places.ndim - d - 1)] - first) if size > 1 else 0
             for d, size in enumerate(places.shape)]
    expected = np.full((1,) * places.ndim, first)
    for d, (size, step) in enumerate(zip(places.shape, steps, strict=True)):
        expected = expected + (np.arange(size) * step).reshape(-1, *(1,) * (places.ndim - 1 - d))
    return tuple(steps) if min(steps, default=0) >= 0 and np.array_equal(expected, places) else None


def _parts(places, there, dim):
    """The fewest (start, stop, step) along a dimension of which each takes the same step throughout."""
    size = places.shape[dim]
    if size == 1:
        return [(0, 1, 1)]
    rows, known = (np.moveaxis(each, dim, 0).reshape(size, -1) for each in (places, there))
    apart = rows[1:] - rows[:-1]
    first = apart[np.arange(size - 1), known[1:].argmax(1)]
    alike = (known[1:] == known[:-1]).all(1) & ((apart == first[:, None]) | ~known[1:]).all(1)
    behind = np.concatenate([[0], np.cumsum(np.where(alike, first, 0))]).tolist()
    piece = np.concatenate([[0], np.cumsum(~alike)]).tolist()
    best = None
    for step in range(1, min(_STEP, size) + 1):
        found = []
        for start in range(step):
            found += _runs(behind, piece, start, step, size)
            if best is not None and len(found) >= len(best):
                break
        if best is None or len(found) < len(best):
            best = found
    return best


def _runs(behind, piece, start, step, size):
    """Runs of places from ``start`` on, ``step`` apart, in one piece and equally far from each other."""
    found, first, last, apart = [], start, start, None
    for at in range(start + step, size + step, step):
        gap = behind[at] - behind[last] if at < size and piece[at] == piece[last] else -1
        if gap < 0 or apart is not None and gap != apart:
            found.append((first, last + 1, step))
            first, apart = at, None
        else:
            apart = gap
        last = at
    return found
