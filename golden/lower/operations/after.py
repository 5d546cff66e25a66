"""What of the nodes behind a product, and behind the core's steps, the vector unit does before anything is stored."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import fx

from hbfp.golden.ops.operation import Elements, Shape, Windows, keeps_zeros
from hbfp.golden.ops.table import operation_of
from hbfp.golden.vector import programs

from ..errors import LoweringError
from ..memory import Value
from ..nodes import Nodes
from ..products.after import After, Step
from ..same import aten
from ..windows import taps_fit
from .forms import formed

_RELU = (aten.relu.default, aten.relu_.default)


def steps_after(net: Nodes, last: Any, order: list[int]) -> tuple[After, fx.Node]:
    """Take up operations of each element behind a node; these, and the last of their nodes.

    Each takes the result of the one before, alone or with one tensor of its shape that lies in DRAM already. ``order``
    has the dimensions in the order in which such a tensor is loaded, channels innermost.
    """
    after = After(net.build)
    whole = net.graph.results[last].shape[order[-1]] % net.build.lanes == 0
    while (user := net.only_user(last)) is not None:
        step = _step(net, last, user, order, whole)
        if step is None:
            break
        net.done.add(user)
        after.steps.append(step)
        if step.program == programs.add() and (relu := net.follower(user, *_RELU)) is not None:
            net.done.add(relu)
            step.program, user = programs.add("relu"), relu
        last = user
    return after, last


def windows_after(net: Nodes, last: Any, after: After, fit: Callable[[After], bool]) -> tuple[After, fx.Node]:
    """Take up windows behind a convolution's last node, which divide its images (N, C, H, W) without rest; what comes
    behind it then, and the last node.
    """
    user = net.only_user(last)
    operation = operation_of(user.target) if user is not None else None
    if operation is None or operation.form is None:
        return after, last
    try:
        form, operands = formed(net, user)
    except LoweringError:                                  # which it meets again when its own turn comes
        return after, last
    shape = net.graph.results[last].shape
    if (not isinstance(form, Windows) or operands != [last] or form.over not in ((), (2, 3)) or form.line
            or len(shape) != 4 or form.stride != form.size or form.padding != (0, 0) or form.dilation != (1, 1)
            or any(side % size for side, size in zip(shape[2:], form.size, strict=True))
            or not taps_fit(form.size[0] * form.size[1]) or not fit(with_it := replace(after, windows=form))):
        return after, last
    net.done.add(user)
    return with_it, user


def _step(net, last, user, order, whole):
    """The step that a node makes of the result of the one before; None if it makes none of each element."""
    operation = operation_of(user.target)
    if operation is None or operation.shape != Shape.ELEMENT:
        return None
    try:
        form, operands = formed(net, user)
    except LoweringError:                                  # which it meets again when its own turn comes
        return None
    if not isinstance(form, Elements) or not whole and not keeps_zeros(form.program, len(operands)):
        return None
    if operands == [last]:
        return Step(form.program)
    other = operands[operands[0] is last]
    if len(operands) != 2 or operands.count(last) != 1 or not net.is_there(other) \
            or net.graph.results[user].shape != net.graph.results[last].shape:
        return None
    where = net.value(other).where.expand(net.graph.results[last].shape).permute(order)
    return Step(form.program, Value(where, net.value(other).home), other is operands[0])
