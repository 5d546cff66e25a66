"""What of the nodes behind a product, and behind the core's steps, the vector unit does before anything is stored."""

from typing import Any

from torch import fx

from hbfp.golden.ops.operation import Elements, Shape, keeps_zeros
from hbfp.golden.ops.table import operation_of
from hbfp.golden.vector import programs

from ..errors import LoweringError
from ..memory import Value
from ..nodes import Nodes
from ..products.after import After, Step
from ..same import aten
from .vector import formed

_SUMS = (aten.add.Tensor, aten.add_.Tensor)
_RELU = (aten.relu.default, aten.relu_.default)


def steps_after(net: Nodes, last: Any, order: list[int]) -> tuple[After, fx.Node]:
    """Sums with tensors that are there, activations and factors behind a node, and the last of those nodes.

    ``order`` has the dimensions of what the other tensors are loaded as, channels innermost.
    """
    after = After(net.build)
    whole = net.graph.results[last].shape[order[-1]] % net.build.lanes == 0
    while (user := net.only_user(last)) is not None:
        step = _step(net, last, user, order, whole)
        if step is None:
            break
        net.done.add(user)
        after.steps.append(step)
        if user.target in _SUMS and (relu := net.follower(user, *_RELU)) is not None:
            net.done.add(relu)
            step.program, user = programs.add("relu"), relu
        last = user
    return after, last


def _step(net, last, user, order, whole):
    """What a node does with the result of the one before; None if that is nothing for here."""
    if user.target in _SUMS and len(user.args) == 2 and user.kwargs.get("alpha", 1) == 1:
        other = user.args[1] if user.args[0] is last else user.args[0]
        if isinstance(other, fx.Node) and other is not last and net.is_there(other) \
                and net.graph.results[user].shape == net.graph.results[last].shape:
            where = net.value(other).where.expand(net.graph.results[last].shape).permute(order)
            return Step(programs.add(), Value(where, net.value(other).home), other is user.args[0])
    operation = operation_of(user.target)
    if operation is None or operation.shape != Shape.ELEMENT:
        return None
    try:
        form, operands = formed(net, user)
    except LoweringError:                                  # which it meets again when its own turn comes
        return None
    if not isinstance(form, Elements) or not whole and not keeps_zeros(form.program, len(operands)):
        return None
    if operation.gradient and len(operands) == 2 and last in operands and operands[0] is not operands[1]:
        other = operands[operands[0] is last]
        if net.is_there(other) and net.graph.results[other].shape == net.graph.results[last].shape:
            where = net.value(other).where.permute(order)
            return Step(form.program, Value(where, net.value(other).home), other is operands[0])
    return Step(form.program) if operands == [last] else None
