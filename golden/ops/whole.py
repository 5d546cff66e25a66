"""Whole numbers: the nearest, those below and above, what divisions leave; places of the largest; and waves.

Results that torch gives as integers are FP32 numbers on the device, exact below 2^24.
"""

from collections.abc import Callable
from typing import Any

import torch

from ..vector import waves
from .operation import Elements, Operation, Shape, Unsupported, calls

aten = torch.ops.aten


def _of_each(name: str, program: Callable[[], Any]) -> Operation:
    def form(x, decimals=0):
        if decimals:
            raise Unsupported(f"decimals={decimals}; a product before it, and one behind, would do")
        return Elements(program(), (x,))
    return Operation(name, calls(name), Shape.ELEMENT, form)


def _over(x, y):
    return torch.floor(x / y)


def _rest(x, y):
    return x - torch.floor(x / y) * y


def _rest_cut(x, y):
    return x - torch.trunc(x / y) * y


def _places(x, dim):
    """Numbers of places along a dimension, in the shape of one that broadcasts."""
    return torch.arange(x.shape[dim], dtype=x.dtype, device=x.device).reshape(
        [-1 if d == dim % x.dim() else 1 for d in range(x.dim())])


def _first(x, most, dim):
    """The first place of a maximum along a dimension, a real number; that has size 1."""
    return torch.where(x < most, float(x.shape[dim]), _places(x, dim)).amin(dim, keepdim=True)


def _place(x, dim=None, keepdim=False):
    if dim is None:
        found = _first(x.reshape(-1), x.amax(), 0)
        return found.to(torch.int64).reshape([1] * x.dim() if keepdim else [])
    found = _first(x, x.amax(dim, keepdim=True), dim).to(torch.int64)
    return found if keepdim else found.squeeze(dim)


def _place_of_least(x, dim=None, keepdim=False):
    return aten.argmax(-x, dim, keepdim)


def _top(x, k, dim=-1, largest=True, sorted=True):
    """The largest, one after the other: what was found is -inf from then on."""
    left, values, places = x if largest else -x, [], []
    for turn in range(k):
        values.append(left.amax(dim, keepdim=True))
        places.append(_first(left, values[-1], dim))
        if turn < k - 1:
            left = torch.where(_places(x, dim) == places[-1], float("-inf"), left)
    found = torch.cat(values, dim)
    return found if largest else -found, torch.cat(places, dim).to(torch.int64)


def _sorted(x, dim=-1, descending=False, *, stable=True):
    return aten.topk(x, x.shape[dim], dim, descending)


def _running(x, dim, combine):
    """What is left of a dimension combined with all before it, of powers of two at a time."""
    y, step, size = x, 1, x.shape[dim]
    while step < size:
        y = torch.cat([y.narrow(dim, 0, step), combine(y.narrow(dim, step, size - step),
                                                       y.narrow(dim, 0, size - step))], dim)
        step *= 2
    return y


def _check(dtype):
    if dtype not in (None, torch.float32):
        raise Unsupported(f"it gives {dtype}; numbers of float32 would do".replace("torch.", ""))


def _totals(x, dim, dtype=None):
    _check(dtype)
    return _running(x, dim, torch.add)


def _products(x, dim, dtype=None):
    _check(dtype)
    return _running(x, dim, torch.mul)


def _product(x, dim=None, keepdim=False, dtype=None):
    _check(dtype)
    if dim is None:
        x, dim, keepdim = x.reshape(-1), 0, False
    y = x
    while (size := y.shape[dim]) > 1:
        half = size // 2
        both = y.narrow(dim, 0, half) * y.narrow(dim, half, half)
        y = torch.cat([both, y.narrow(dim, 2 * half, 1)], dim) if size % 2 else both
    return y if keepdim else y.squeeze(dim)


def _parts(name, parts):
    return Operation(name, calls(name), Shape.PARTS, parts=parts)


OPERATIONS: tuple[Any, ...] = (
    _of_each("round", waves.rounded), _of_each("floor", waves.floor), _of_each("ceil", waves.ceil),
    _of_each("trunc", waves.cut), _of_each("sin", waves.sine), _of_each("cos", waves.cosine),
    _of_each("erf", waves.error), _parts("tan", lambda x: torch.sin(x) / torch.cos(x)),
    _parts("frac", lambda x: x - torch.trunc(x)),
    _parts("floor_divide", _over), _parts("remainder", _rest), _parts("fmod", _rest_cut),
    _parts("argmax", _place), _parts("argmin", _place_of_least), _parts("topk", _top), _parts("sort", _sorted),
    _parts("cumsum", _totals), _parts("cumprod", _products), _parts("prod", _product))
