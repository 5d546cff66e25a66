"""What a model computes beside its products, as the accelerator does: the functions of :mod:`golden.side` in torch.

A dispatch mode looks at every operation below autograd, whatever the name under which the model called it. Gradients
are torch's own formulas, of the values that the accelerator has. What has no definition here stays as it is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .. import vector_programs as programs
from ..side import DESIGN_SIDE, Side, batch_norm_factors, elements
from .inspect import Mode
from .memory import array
from .products import in_hbfp

__all__ = ["DESIGN_SIDE", "Distance", "Side", "SideMode", "distances"]

aten = torch.ops.aten
#: Functions of one operand, by the name of their program's second step.
FUNCTIONS = {aten.relu: "relu", aten.relu_: "relu", aten.gelu: "gelu", aten.silu: "silu", aten.silu_: "silu",
             aten.sigmoid: "sigmoid", aten.sigmoid_: "sigmoid", aten.tanh: "tanh", aten.tanh_: "tanh",
             aten.exp: "exp", aten.log: "log", aten.rsqrt: "rsqrt", aten.reciprocal: "recip"}


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


def _function(side, func, x, *rest, **options):
    if options.get("approximate", "none") != "none":
        return NotImplemented
    return _each(programs.activation(FUNCTIONS[func.overloadpacket]), x)


def _sum(program, constant):
    """Addition or subtraction: ``program`` of two tensors, ``constant`` of a tensor and a number."""
    def handler(side, func, a, b, alpha=1):
        if alpha != 1 or not _single(a):
            return NotImplemented
        if isinstance(b, torch.Tensor):
            return _each(program(), a, b) if _single(b) else NotImplemented
        return _each(programs.shift(constant(b)), a)
    return handler


def _multiply(side, func, a, b):
    if isinstance(b, torch.Tensor):
        return _each(programs.multiply(), a, b) if _single(a, b) else NotImplemented
    return _each(programs.scale(b), a)


def _divide(side, func, a, b):
    if isinstance(b, torch.Tensor):
        if not _single(a, b):
            return NotImplemented
        return _each(programs.multiply(), a, _each(programs.activation("recip"), b))
    return _each(programs.divide(b), a)


def _softmax(side, func, x, dim, *rest):
    rows = patterns(x.movedim(dim, -1))
    return _tensor(side.rows(programs.softmax(), rows)).movedim(-1, dim)


def _layer_norm(side, func, x, shape, weight, bias, eps):
    n = int(np.prod(shape))
    rows = patterns(x).reshape(-1, n)
    if weight is None and bias is None:
        y = side.rows(programs.layer_norm_plain(n, eps), rows)
    else:
        gamma = np.float32(1).view(np.uint32) if weight is None else patterns(weight).reshape(n)
        beta = np.uint32(0) if bias is None else patterns(bias).reshape(n)
        program = programs.load_row(6) + programs.load_row(7) + programs.layer_norm(n, eps)
        y = side.rows(program, np.broadcast_to(gamma, rows.shape), np.broadcast_to(beta, rows.shape), rows)
    values = x.detach().reshape(-1, n)                # what torch keeps for its gradient
    mean = values.mean(-1)
    root = (values.var(-1, correction=0) + eps).rsqrt()
    lead = (*x.shape[:x.dim() - len(shape)], *(1 for _ in shape))
    return _tensor(y).reshape(x.shape), mean.reshape(lead), root.reshape(lead)


def norm_factors(weight: torch.Tensor | None, bias: torch.Tensor | None, mean: torch.Tensor, variance: torch.Tensor,
                 eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Factor and addend of each channel of a batch norm, as patterns."""
    one, none = torch.ones_like(mean), torch.zeros_like(mean)
    gamma, beta = one if weight is None else weight, none if bias is None else bias
    return batch_norm_factors(patterns(gamma), patterns(beta), patterns(mean), patterns(variance), eps)


def _batch_norm(side, func, x, weight, bias, mean, variance, training, momentum, eps):
    if training or mean is None:
        return NotImplemented
    program = programs.load_row(6) + programs.load_row(7) + programs.scale_shift()
    shape = (-1, *(1 for _ in x.shape[2:]))
    factor, addend = (_tensor(part.reshape(shape)) for part in norm_factors(weight, bias, mean, variance, eps))
    return _each(program, factor, addend, x), x.new_empty(0), x.new_empty(0)


def _norm(side, func, x, weight, bias, mean, variance, momentum, eps):
    return _batch_norm(side, func, x, weight, bias, mean, variance, False, momentum, eps)


def windows(x: torch.Tensor, size: Any, stride: Any, padding: Any, dilation: Any, fill: float) -> list[np.ndarray]:
    """The taps of windows over (..., H, W), kernel row by kernel row: patterns of (..., OH, OW) each."""
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = (pair(value) for value in (size, stride or size, padding, dilation))
    x = torch.nn.functional.pad(x.detach(), (pw, pw, ph, ph), value=fill)
    oh, ow = (x.shape[-2] - dh * (kh - 1) - 1) // sh + 1, (x.shape[-1] - dw * (kw - 1) - 1) // sw + 1
    return [patterns(x[..., dh * i:dh * i + sh * (oh - 1) + 1:sh, dw * j:dw * j + sw * (ow - 1) + 1:sw])
            for i in range(kh) for j in range(kw)]


def pair(value: Any) -> tuple[int, int]:
    """Two sides of what torch also takes as one."""
    if isinstance(value, int):
        return value, value
    return (value[0], value[-1])


def _max_pool(side, func, x, size, stride=(), padding=0, dilation=1, ceil_mode=False):
    if ceil_mode:
        return NotImplemented
    taps = windows(x, size, stride, padding, dilation, float("-inf"))
    y = _tensor(elements(programs.maximum(len(taps)), *taps))
    indices = func(x, size, stride, padding, dilation, ceil_mode)[1]    # for the gradient alone
    return y, indices


def _max_pool_1d(side, func, x, size, stride=(), padding=0, dilation=1, ceil_mode=False):
    if ceil_mode:
        return NotImplemented
    wide = [(1, *value) if value else value for value in map(_listed, (size, stride))]
    taps = windows(x.unsqueeze(-2), *wide, (0, *_listed(padding)), (1, *_listed(dilation)), float("-inf"))
    return _tensor(elements(programs.maximum(len(taps)), *taps)).squeeze(-2)


def _listed(value):
    return [value] if isinstance(value, int) else list(value)


def _average_pool(side, func, x, size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor=None):
    if ceil_mode or divisor is not None or not count_include_pad and any(pair(padding)):
        return NotImplemented
    taps = windows(x, size, stride, padding, 1, 0.0)
    return _tensor(elements(programs.average(len(taps)), *taps))


def _adaptive_pool(side, func, x, size):
    sides = list(zip(x.shape[-2:], size, strict=True))
    if any(given % wanted for given, wanted in sides):
        return NotImplemented
    return _average_pool(side, func, x, [given // wanted for given, wanted in sides])


def _mean(side, func, x, dim=None, keepdim=False, dtype=None):
    dims = sorted(d % x.dim() for d in (range(x.dim()) if dim is None else dim))
    if x.dim() - 1 in dims and x.dim() < 4 or dtype not in (None, torch.float32):
        return NotImplemented
    last = x.movedim(dims, list(range(-len(dims), 0))).flatten(-len(dims))
    y = _tensor(elements(programs.average(last.shape[-1]), *(patterns(part) for part in last.unbind(-1))))
    for d in dims if keepdim else ():
        y = y.unsqueeze(d)
    return y


def _single(*tensors):
    return all(isinstance(t, torch.Tensor) and t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)


Handler = Callable[..., Any]
#: Operation -> what the accelerator does; NotImplemented where it has no definition.
HANDLERS: dict[Any, Handler] = dict.fromkeys(FUNCTIONS, _function) | {
    aten.add: _sum(programs.add, lambda b: b), aten.add_: _sum(programs.add, lambda b: b),
    aten.sub: _sum(programs.subtract, lambda b: -b), aten.sub_: _sum(programs.subtract, lambda b: -b),
    aten.mul: _multiply, aten.mul_: _multiply, aten.div: _divide, aten.div_: _divide,
    aten._softmax: _softmax, aten.native_layer_norm: _layer_norm, aten.native_batch_norm: _batch_norm,
    aten._native_batch_norm_legit_no_training: _norm,
    aten.max_pool2d_with_indices: _max_pool, aten.max_pool1d: _max_pool_1d, aten.avg_pool2d: _average_pool,
    aten._adaptive_avg_pool2d: _adaptive_pool, aten.mean: _mean}


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
    """Within, operations of :data:`HANDLERS` on float32 tensors have the accelerator's values."""

    def __init__(self, side: Side) -> None:
        super().__init__()
        self.side = side

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        handler = HANDLERS.get(getattr(func, "overloadpacket", None))
        if handler is None:
            y = self.parts(func, args, kwargs)
            return func(*args, **kwargs) if y is NotImplemented else y
        if in_hbfp() or not args or not _single(args[0]):
            return func(*args, **kwargs)
        y = handler(self.side, func, *args, **kwargs)
        if y is NotImplemented:
            return func(*args, **kwargs)
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
