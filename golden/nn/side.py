"""What a model computes beside its products, as the accelerator does: the operations of :mod:`golden.ops` in torch.

A dispatch mode looks at every operation below autograd, whatever the name under which the model called it, forward and
in the backward pass: gradients are what autograd calls for, each with the bits that the table says. What the table does
not have stays as it is.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _push_mode
from torch.utils._pytree import tree_leaves

from ..ops.operation import Elements, Shape, Unsupported
from ..ops.table import operation_of
from ..vector.side import DESIGN_SIDE, Side
from .forms import computed
from .inspect import Mode
from .products import in_hbfp

__all__ = ["DESIGN_SIDE", "Distance", "Side", "SideMode", "distances", "sided"]


def _single(*tensors):
    return all(t.dtype == torch.float32 and t.device.type in ("cpu", "cuda") and not isinstance(t, FakeTensor)
               for t in tensors)


def _there(results, operands):
    """Results, made on the CPU, on the device of the operands."""
    device = next((x.device for x in operands if x.device.type != "cpu"), None)
    if device is None:
        return results
    warnings.warn(f"Side arithmetic is computed on the CPU: what lies on {device.type} is copied there and back for "
                  "every operation", stacklevel=2)
    return [y.to(device) for y in results]


@dataclass
class Distance:
    """How far an operation is from torch's own.

    Attributes
    ----------
    elements : int
        Numbers that it gave, Inf and NaN too.
    largest : float
        Largest absolute difference, where both give a finite number.
    different : int
        How many numbers differ there.
    """
    elements: int = 0
    largest: float = 0.0
    different: int = 0

    def __add__(self, other: "Distance") -> "Distance":
        return Distance(self.elements + other.elements, max(self.largest, other.largest),
                        self.different + other.different)


#: The name under which a node of autograd's graph keeps its side.
_MARK = "hbfp_side"
#: What is found within :func:`watched`, the innermost last: by operation.
_WATCHES: list[dict[str, Distance]] = []


class SideMode(Mode):
    """Within, operations of :data:`golden.ops.table.OPERATIONS` on float32 tensors have the accelerator's values."""

    def __init__(self, side: Side) -> None:
        super().__init__()
        self.side = side

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operation = operation_of(func)
        if operation is None or operation.shape == Shape.MOVE:
            y = self.parts(func, args, kwargs)
            return func(*args, **kwargs) if y is NotImplemented else y
        outs, in_place = _written(func)
        if outs:
            with self:
                y = func.overloadpacket(*args, **{name: each for name, each in kwargs.items() if name not in outs})
            found = [kwargs[name].resize_(each.shape).copy_(each)
                     for name, each in zip(outs, tree_leaves(y), strict=True)]
            return found[0] if len(found) == 1 else tuple(found)
        y = self._given(operation, func, args, kwargs)
        return args[0].copy_(y) if in_place and y is not args[0] else y

    def _given(self, operation, func, args, kwargs):
        """What an operation gives; one in place may give another tensor than its operand."""
        first = next((each for each in args if isinstance(each, torch.Tensor) and each.is_floating_point()), None)
        if in_hbfp() or first is None or not _single(first):
            return func(*args, **kwargs)
        with self:
            y = operation.apart(*args, **kwargs)
        if y is not NotImplemented:
            return _filled(y, func, args, kwargs)
        if operation.form is None:
            return func(*args, **kwargs)
        try:
            form = operation.form(*args, **kwargs)
        except Unsupported:
            return func(*args, **kwargs)
        if isinstance(form, Elements):                     # whole numbers and truths are FP32 numbers there
            form = replace(form, operands=tuple(x if x.is_floating_point() or x.is_complex() else x.float()
                                                for x in form.operands))
        if not _single(*form.operands, *getattr(form, "numbers", ())):
            return func(*args, **kwargs)
        kept = operation.kept(*args, **kwargs) if operation.kept else ()
        y = *_there(computed(form, self.side), form.operands), *kept
        y = y if len(y) > 1 else y[0]
        if operation.truth:
            return y != 0
        if _WATCHES:
            _measure(func, args, kwargs, y)
        return y


def _filled(y, func, args, kwargs):
    """Results by parts, which leave those empty that only gradients read: torch's own stand in their places."""
    if not isinstance(y, tuple) or all(each.numel() for each in y[1:]):
        return y
    return tuple(each if each.numel() else own for each, own in zip(y, func(*args, **kwargs), strict=True))


@cache
def _written(func):
    """The names of what an overload writes its results into, and whether it changes its first operand and gives it."""
    first, *_ = arguments = func._schema.arguments
    return [each.name for each in arguments if each.is_out], first.alias_info is not None and first.alias_info.is_write


def _measure(func, args, kwargs, y):
    """Note how far ``y`` is from what torch gives; an operation in place is tried on a copy."""
    own = func(args[0].clone(), *args[1:], **kwargs)
    own, y = (part[0] if isinstance(part, (tuple, list)) else part for part in (own, y))
    same = torch.isfinite(own) & torch.isfinite(y)
    gap = (own - y)[same].abs()
    found, name = _WATCHES[-1], func.overloadpacket.__name__.strip("_")
    found[name] = found.get(name, Distance()) + Distance(
        y.numel(), float(gap.max()) if gap.numel() else 0.0, int((gap > 0).sum()))


@contextmanager
def watched() -> Iterator[dict[str, Distance]]:
    """Within, what :class:`SideMode` computes is compared with torch's own: operation -> :class:`Distance`.

    Each is measured on the same operands as the accelerator has them, so that errors do not add up.
    """
    _WATCHES.append({})
    try:
        yield _WATCHES[-1]
    finally:
        _WATCHES.pop()


def distances(module: torch.nn.Module, *inputs: Any,
              named: Mapping[str, Any] | None = None) -> dict[str, Distance]:
    """Run a model that was converted with ``side``, and say how far each kind of operation is from torch's own.

    Parameters
    ----------
    module : torch.nn.Module
        The model.
    inputs, named
        What its ``forward`` takes: in order, and a mapping of what it takes by name.

    Returns
    -------
    dict
        As of :func:`watched`.
    """
    with watched() as found, torch.no_grad():
        module(*inputs, **named or {})
    return found


def here() -> Side | None:
    """The accelerator whose arithmetic is in force where this is called; None if that is torch's."""
    modes = reversed(_get_current_dispatch_mode_stack())
    return next((mode.side for mode in modes if isinstance(mode, SideMode)), None)


@contextmanager
def sided(side: Side | None) -> Iterator[None]:
    """Within, what is no product has the accelerator's bits: forward, loss, ``backward()``, a step of an optimiser.

    Parameters
    ----------
    side : Side, optional
        None leaves all as it is.

    Raises
    ------
    NotImplementedError
        If torch traces what is within: what it would trace are torch's own operations; or under ``torch.func``.
    """
    if side is None or side == here():
        yield
        return
    if torch.compiler.is_compiling():
        raise NotImplementedError("A model with side arithmetic is not traced; convert it without side first "
                                  "(golden.lower does so)")
    if torch._C._functorch.get_interpreter_stack():
        raise NotImplementedError("A model with side arithmetic does not run under torch.func (vmap, grad and so on): "
                                  "give it the whole batch, or loop; gradients come from backward()")
    with SideMode(side):
        yield


def call(side: Side | None, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A call within :func:`sided`, of whose result the gradients have the accelerator's bits, too, wherever
    ``backward()`` runs.

    Every node of autograd's graph that the call has made puts the mode in force before it runs; autograd itself brings
    the modes of before back behind each node.
    """
    if side is None:
        return function(*args, **kwargs)
    first = torch._C._autograd._get_sequence_nr()
    with sided(side):
        y = function(*args, **kwargs)
    nodes, seen = [each.grad_fn for each in tree_leaves(y) if isinstance(each, torch.Tensor)], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen or node._sequence_nr() < first:
            continue
        seen.add(node)
        nodes += [each for each, _ in node.next_functions]
        if _MARK not in node.metadata:                     # else a model within has its own side
            node.metadata[_MARK] = side
            node.register_prehook(partial(_enter, side))
    return y


def _enter(side, gradients):
    if here() != side:
        _push_mode(SideMode(side))
