"""What a model computes beside its products, as the accelerator does: the operations of :mod:`golden.ops` in torch.

A dispatch mode looks at every operation below autograd, whatever the name under which the model called it. Gradients
are torch's own formulas, of the values that the accelerator has. What the table does not have stays as it is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch

from ..ops.operation import Elements, Form, Rows, Shape, Unsupported
from ..ops.table import operation_of
from ..vector import programs
from ..vector.side import DESIGN_SIDE, Side, elements
from .inspect import Mode
from .memory import array
from .products import in_hbfp

__all__ = ["DESIGN_SIDE", "Distance", "Side", "SideMode", "distances"]


def patterns(tensor: torch.Tensor) -> np.ndarray:
    """A float32 tensor as bit patterns."""
    return np.ascontiguousarray(array(tensor)).view(np.uint32)


def _tensor(bits):
    return torch.from_numpy(np.ascontiguousarray(bits).view(np.float32))


def _each(program, *operands):
    """What a program gives for each element of operands that broadcast; it lies in memory as the largest of them."""
    operands = torch.broadcast_tensors(*(x.detach() for x in operands))
    strides = max((x.stride() for x in operands), key=sum)
    order = sorted(range(len(strides)), key=lambda d: -strides[d])
    turned = [x.permute(order) for x in operands]
    y = _tensor(elements(program, *map(patterns, turned))).reshape(turned[0].shape)
    return y.permute([order.index(d) for d in range(len(order))])


def computed(form: Form, side: Side) -> torch.Tensor:
    """What a form gives for its operands, tensors on the CPU."""
    match form:
        case Elements():
            return _each(form.program, *form.operands)
        case Rows():
            return _rows(form, side)
    return _windows(form)


def _rows(form, side):
    fixed = form.fixed(*map(patterns, form.numbers))
    loads = [each for number in range(1, len(fixed) + 1) for each in programs.load_row(number)]
    if not form.sums:
        x = form.operands[0]
        shape = [-1 if d == form.dim % x.dim() else 1 for d in range(x.dim())]
        return _each(loads + form.program, *(_tensor(row).reshape(shape) for row in fixed), *form.operands)
    rows = [patterns(form.rows(x).movedim(form.dim, -1)) for x in form.operands]
    given = (np.broadcast_to(row.reshape(-1), rows[0].shape) for row in fixed)
    y = _tensor(side.rows(loads + form.program, *given, *rows))
    return form.result((y[..., :1] if form.single else y).movedim(-1, form.dim))


def _windows(form):
    x = form.images(form.operands[0].detach())
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = form.size, form.stride, form.padding, form.dilation
    x = torch.nn.functional.pad(x, (pw, pw, ph, ph), value=form.border)
    oh, ow = (x.shape[-2] - dh * (kh - 1) - 1) // sh + 1, (x.shape[-1] - dw * (kw - 1) - 1) // sw + 1
    y = _tensor(elements(form.program, *(
        patterns(x[..., dh * i:dh * i + sh * (oh - 1) + 1:sh, dw * j:dw * j + sw * (ow - 1) + 1:sw])
        for i, j in product(range(kh), range(kw)))))
    if not form.over:
        return y.squeeze(-2) if form.line else y
    shape = form.operands[0].shape
    return y.reshape([1 if d in form.over else size for d, size in enumerate(shape) if form.keep or d not in form.over])


def _single(*tensors):
    return all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)


@dataclass
class Distance:
    """How far an operation is from torch's own, over all elements that both give as numbers."""
    elements: int = 0
    largest: float = 0.0
    different: int = 0

    def __add__(self, other: "Distance") -> "Distance":
        return Distance(self.elements + other.elements, max(self.largest, other.largest),
                        self.different + other.different)


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
        if in_hbfp() or not args or not isinstance(args[0], torch.Tensor) or not _single(args[0]):
            return func(*args, **kwargs)
        if operation.parts:
            with self:
                return operation.parts(*args, **kwargs)
        assert operation.form is not None
        try:
            form = operation.form(*args, **kwargs)
        except Unsupported:
            return func(*args, **kwargs)
        if not _single(*form.operands, *getattr(form, "numbers", ())):
            return func(*args, **kwargs)
        y = computed(form, self.side)
        y = (y, *operation.kept(*args, **kwargs)) if operation.kept else y
        if _WATCHES:
            _measure(func, args, kwargs, y)
        return args[0].copy_(y) if func.overloadpacket.__name__.endswith("_") else y


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


def distances(module: torch.nn.Module, *inputs: Any, **options: Any) -> dict[str, Distance]:
    """Run a model that was converted with ``side``, and say how far each kind of operation is from torch's own.

    Returns
    -------
    dict
        As of :func:`watched`.
    """
    with watched() as found, torch.no_grad():
        module(*inputs, **options)
    return found


@contextmanager
def sided(side: Side | None) -> Iterator[None]:
    """Within, a model of which ``side`` is the accelerator's; None leaves it as it is.

    Raises
    ------
    NotImplementedError
        If torch traces the model: what it would trace are torch's own operations.
    """
    if side is None:
        yield
        return
    if torch.compiler.is_compiling():
        raise NotImplementedError("A model with side arithmetic is not traced; convert it without side first "
                                  "(golden.lower does so)")
    with SideMode(side):
        yield
