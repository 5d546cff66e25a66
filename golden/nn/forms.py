"""What the forms of :mod:`golden.ops` give for tensors: their programs, run by the golden vector unit on the CPU."""

from itertools import product

import numpy as np
import torch

from ..ops.operation import Elements, Form, Rows
from ..ops.results import without
from ..vector import programs
from ..vector.side import Side, ascending, elements
from .memory import array


def patterns(tensor: torch.Tensor) -> np.ndarray:
    """A float32 tensor, on whatever device, as bit patterns."""
    return np.ascontiguousarray(array(tensor.cpu())).view(np.uint32)


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


def computed(form: Form, side: Side) -> list[torch.Tensor]:
    """The results, on the CPU, that a form gives for its operands, float32; the lanes of ``side`` order sums."""
    match form:
        case Elements():
            return [_each(without(form.program, *(other for other in range(len(form.results)) if other != number)),
                          *form.operands) for number in range(len(form.results))]
        case Rows() if form.sums:
            return _rows(form, side)
        case Rows():
            return [_along(form)]
    return [_windows(form)]


def _loads(form):
    """A program that takes a form's parameters into registers, and their rows."""
    fixed = form.fixed(*map(patterns, form.numbers))
    return [each for number in range(1, len(fixed) + 1) for each in programs.load_row(number)], fixed


def _along(form):
    """Rows of which each element is by itself."""
    loads, fixed = _loads(form)
    x = form.operands[0]
    shape = [-1 if d == form.dim % x.dim() else 1 for d in range(x.dim())]
    return _each(loads + form.program, *(_tensor(row).reshape(shape) for row in fixed), *form.operands)


def _rows(form, side):
    loads, fixed = _loads(form)
    rows = [patterns(form.rows(x.detach()).movedim(form.dim, -1)) for x in form.operands]
    whole = max((row.shape for row in rows), key=lambda shape: shape[-1])
    given = (np.broadcast_to(row.reshape(-1), whole) for row in fixed)
    found = []
    for number, (result, y) in enumerate(zip(form.results, side.results(loads + form.program, *given, *rows),
                                             strict=True)):
        y = _tensor(y[..., :1] if result.single else y).movedim(-1, form.dim)
        found.append(form.result(_added(y, result.over) if result.over else y, number))
    return found


def _added(rows, over):
    """Rows added up over dimensions, which stay with size 1."""
    kept = [1 if d in over else size for d, size in enumerate(rows.shape)]
    first = rows.movedim(over, tuple(range(len(over)))).flatten(0, len(over) - 1)
    return _tensor(ascending(patterns(first))).reshape(kept)


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
