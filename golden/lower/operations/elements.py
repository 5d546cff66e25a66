"""Operations of the vector unit on each element."""

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from hbfp.golden import vector_programs as programs
from hbfp.golden.nn.side import FUNCTIONS
from hbfp.golden.spec.vector import Instruction

from .. import vectors
from ..errors import LoweringError
from ..memory import Value
from ..nodes import Handler, Made, Nodes
from ..same import aten
from ..tensors import channels_last

Passes = list[Instruction]


def _elements(net, node, program, *operands):
    """A program for each element; operands are broadcast."""
    output = net.fresh(node, _order(operands, net.graph.results[node]))
    parts = [Value(each.where.expand(output.shape), each.home) for each in operands]
    if not output.shape:
        *parts, output = (Value(each.where[None], each.home) for each in (*parts, output))
    order = vectors.physical(output)
    flat = output.shape[order[-1]] % net.build.lanes == 0 or vectors.keeps_zeros(program, len(parts))
    vectors.by_rows(net.build, program, parts, order, output, flat=flat)
    return node, ()


def _order(operands, result):
    """The order of the dimensions of the largest operand."""
    whole = [each for each in operands if each.shape == tuple(result.shape)]
    return vectors.physical(whole[0]) if whole else channels_last(result.dim())


def function(net: Nodes, node: Any) -> Made:
    """An activation."""
    name = FUNCTIONS[node.target.overloadpacket]
    if node.kwargs.get("approximate", "none") != "none":
        raise LoweringError(f"approximate={node.kwargs['approximate']!r} has another formula; approximate='none' would "
                            "do")
    return _elements(net, node, programs.activation(name), net.value(node.args[0]))


def binary(of_two: Callable[..., Passes], of_one: Callable[[float], Passes]) -> Handler:
    """A handler of an operation of two tensors, or of a tensor and a number."""
    def handler(net, node):
        a, b = node.args[:2]
        if node.kwargs.get("alpha", 1) != 1:
            raise LoweringError(f"alpha={node.kwargs['alpha']} is another operation; a product before it would do")
        if not isinstance(b, fx.Node):
            return _elements(net, node, of_one(b), net.value(a))
        if of_two is programs.add and (last := net.follower(node, aten.relu.default)) is not None:
            net.done.add(last)
            return _elements(net, last, programs.add("relu"), net.value(a), net.value(b))
        return _elements(net, node, of_two(), net.value(a), net.value(b))
    return handler


def masked(net: Nodes, node: Any) -> Made:
    """``masked_fill`` with a constant mask, as a gate and an addend."""
    x, mask, number = node.args
    if not net.is_constant(mask):
        raise LoweringError("its mask depends on the inputs; a constant mask would do")
    shut = net.constant(mask)
    gate = net.build.dram.constant((~shut).float().numpy())
    addend = net.build.dram.constant(torch.where(shut, number, -0.0).numpy())
    return _elements(net, node, programs.choose(), gate, net.value(x), addend)


def divide(net: Nodes, node: Any) -> Made:
    """A tensor by a number."""
    a, b = node.args[:2]
    if isinstance(b, fx.Node):
        raise LoweringError("division by a tensor takes two operations; multiply by torch.reciprocal of it")
    return _elements(net, node, programs.divide(b), net.value(a))
