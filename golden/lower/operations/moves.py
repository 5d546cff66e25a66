"""Operations that only move numbers: concatenation, borders, rows of a table, masks."""

from typing import Any

import numpy as np
import torch

from hbfp.golden.vector import programs

from .. import vectors
from ..errors import LoweringError
from ..memory import Value
from ..nodes import Handler, Made, Nodes
from ..same import aten
from . import tables
from .moved import moved
from .vector import elementwise


def cat(net: Nodes, node: Any) -> Made:
    """Copy parts one behind the other along a dimension; those without numbers count for nothing."""
    parts, dim = node.args[0], node.args[1] if len(node.args) > 1 else 0
    values = [net.value(each) for each in parts if net.graph.results[each].numel()]
    output = net.fresh(node, vectors.physical(values[0]) if len(values[0].shape) == 4 else None, 0.0)
    start = 0
    for value in values:
        size = value.shape[dim]
        net.copy(value, Value(output.where.narrow(dim, start, size), output.home))
        start += size
    return node, ()


def pad(net: Nodes, node: Any) -> Made:
    """Put a number around a tensor, or take borders off it."""
    return _padded(net, node, node.args[0], node.args[1], node.args[2] if len(node.args) > 2 else 0)


def _padded(net, node, x, sides, value):
    """The same, with ``sides`` as torch has them: before and behind, of the last dimension first."""
    if min(sides) < 0:
        return moved(net, node)
    source, output = net.value(x), net.fresh(node, filled=value)
    inner = output.where
    for n, size in enumerate(reversed(source.shape)):
        if 2 * n < len(sides):
            inner = inner.narrow(-1 - n, sides[2 * n], size)
    net.copy(source, Value(inner, output.home))
    return node, ()


def pad_mode(net: Nodes, node: Any) -> Made:
    """Put a number around where the mode is an argument; by other modes numbers of the tensor."""
    if len(node.args) > 2 and node.args[2] != "constant":
        return moved(net, node)
    return _padded(net, node, node.args[0], node.args[1], node.args[3] if len(node.args) > 3 else 0)


def stack(net: Nodes, node: Any) -> Made:
    """Copy parts into a new dimension, which lies next to the one before it, so that the two can be one."""
    parts, dim = node.args[0], node.args[1] if len(node.args) > 1 else 0
    output = net.fresh(node, _stacked(net.value(parts[0]), dim), 0.0)
    for number, each in enumerate(parts):
        net.copy(net.value(each), Value(output.where.select(dim, number), output.home))
    return node, ()


def repeat(net: Nodes, node: Any) -> Made:
    """Copy a tensor so many times along each dimension, of which there may be more than it has, in front."""
    x, times = node.args
    value, output = net.value(x), net.fresh(node, filled=0.0)
    source, target = value.where[(None,) * (len(times) - len(value.shape))], output.where
    for dim in reversed(range(len(times))):
        target = target.unflatten(dim, (times[dim], source.shape[dim]))
        source = source.unsqueeze(dim)
    net.copy(Value(source.expand(target.shape), value.home), Value(target, output.home))
    return node, ()


def _stacked(value, dim):
    """The order of the dimensions of what is stacked along ``dim``: of images the channels stay innermost."""
    order = vectors.physical(value)
    dim %= len(order) + 1
    if len(order) < 4 or not dim or order[-1] == dim - 1:
        return _with(order, dim)
    order = [d + (d >= dim) for d in order]
    order.insert(order.index(dim - 1) + 1, dim)
    return order


def slice_backward(net: Nodes, node: Any) -> Made:
    """Put a tensor within zeros: the gradient of a slice."""
    part, shape, dim, start, end, step = node.args[:6]
    order = vectors.physical(net.value(part))
    return _within(net, node, part, order, lambda where: torch.ops.aten.slice(where, dim, start, end, step))


def select_backward(net: Nodes, node: Any) -> Made:
    """The same of one place along a dimension."""
    part, shape, dim, index = node.args[:4]
    order = _with(vectors.physical(net.value(part)), dim)
    return _within(net, node, part, order, lambda where: where.select(dim, index))


def _with(order, dim):
    """An order of dimensions with a new one, which is not the innermost."""
    dim %= len(order) + 1
    order = [d + (d >= dim) for d in order]
    order.insert(min(dim, max(0, len(order) - 1)), dim)
    return order


def _within(net, node, part, order, view):
    source = net.value(part)
    output = net.fresh(node, order, 0.0)
    net.copy(source, output.view(view))
    return node, ()


def embedding(net: Nodes, node: Any) -> Made:
    """Copy the rows of a table that indices name; LoweringError if the indices are no constants."""
    table, index = node.args[:2]
    if index in net.whole:
        return tables.rows(net, node)
    if not net.is_constant(index):
        raise LoweringError("its indices depend on real numbers; whole numbers among the inputs would do")
    value, rows = net.value(table), net.constant(index)
    output = net.fresh(node)
    for place_ in np.ndindex(*rows.shape):
        net.copy(Value(value.where[int(rows[place_])][None], value.home),
                  Value(output.where[place_][None], output.home))
    return node, ()


def masked(net: Nodes, node: Any) -> Made:
    """``masked_fill`` by a gate and an addend for each element, or by what a mask that is computed chooses."""
    x, mask, number = node.args
    if not net.is_constant(mask):
        return elementwise(net, node, programs.select(float(number)), net.value(mask), net.value(x))
    shut = net.constant(mask)
    gate = net.build.dram.constant((~shut).float().numpy())
    addend = net.build.dram.constant(torch.where(shut, number, -0.0).numpy())
    program = programs.select() if np.signbit(number) and number == 0 else programs.choose()    # whose zeros are +0
    return elementwise(net, node, program, gate, net.value(x), addend)


MOVES: dict[Any, Handler] = {
    aten.constant_pad_nd.default: pad, aten.pad.default: pad_mode, aten.cat.default: cat, aten.stack.default: stack,
    aten.repeat.default: repeat,
    aten.slice_backward.default: slice_backward, aten.select_backward.default: select_backward,
    aten.embedding.default: embedding, aten.masked_fill.Scalar: masked}
