"""Tensors as formats hold them.

HBFP is that of its law. The numbers of :mod:`golden.spec.numbers` have the bits of
:func:`golden.formats.coded.rounded`, by compiled kernels on the CPU, if there are any, else by torch's operations.
"""

import torch
from torch.nn.functional import pad

from ..fast import numbers
from ..formats.names import Operand
from ..formats.rules import POWERS
from ..noise import Stream
from ..spec.numbers import E4M3, Element, Number
from . import products
from .memory import array

_EXPONENT, _FRACTION, _BIAS = 0x7F800000, 23, 127
_LEAST_NORMAL = 2.0 ** -126
#: Numbers that torch has types of.
_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def held(x: torch.Tensor, fmt: Operand, axis: int | tuple[int, ...], stream: Stream | None = None) -> torch.Tensor:
    """A float32 tensor as a format holds it, with blocks along an axis, the first of several; without autograd."""
    if x.is_meta or not x.numel():
        return torch.empty_like(x)
    if isinstance(fmt, Number):
        return rounded(x, fmt, axis)
    axis = axis if isinstance(axis, int) else axis[0]
    rows = x.movedim(axis, -1)
    if fmt.square:                                       # tiles lie over the last two dimensions, matrix by matrix
        y = torch.stack([_encoded(matrix, fmt, stream) for matrix in rows.reshape(-1, *rows.shape[-2:])])
    else:
        y = _encoded(rows.reshape(-1, rows.shape[-1]), fmt, stream)
    return y.reshape(rows.shape).movedim(-1, axis)


def _encoded(matrix, fmt, stream):
    values = products.Operand(matrix.contiguous(), fmt, stream).along(-1).values
    return values if torch.is_tensor(values) else torch.from_numpy(values)


def rounded(x: torch.Tensor, number: Number, axis: int | tuple[int, ...] = -1) -> torch.Tensor:
    """``x`` (float32) as a number holds it; ``axis`` as of :func:`golden.formats.coded.encode`."""
    if not x.numel():
        return x.clone()
    rows = (axis,) if isinstance(axis, int) else tuple(axis)
    axis = rows[0] % x.dim()
    length = x.shape[axis]
    if number.scope == "none":
        return x.to(_TYPES[number.name]).to(x.dtype)
    if number.scope == "block" and x.device.type == "cpu" and numbers.serves(number):
        return torch.from_numpy(numbers.in_blocks(array(x.contiguous()), number, axis))
    if number.block:
        short = -length % number.block
        x = pad(x, (0, 0) * (x.dim() - 1 - axis) + (0, short)) if short else x
        x = x.unflatten(axis, (-1, number.block))
    over = {"tensor": tuple(range(x.dim())), "row": rows}.get(number.scope, (axis + 1,))
    tops = x.abs().amax(over, keepdim=True)
    y = _scaled(x, tops, number)
    return y.flatten(axis, axis + 1).narrow(axis, 0, length) if number.block else y


def _scaled(x, tops, number):
    """Numbers over the scales that their largest magnitudes ask for, rounded, times the scales."""
    element = number.element
    valid = tops.isfinite()
    known = torch.where(valid, tops, 0)
    if number.scope == "block":
        power = ((known.view(torch.int32) >> _FRACTION) - _BIAS - element.emax).clamp(*POWERS)
        y = _elements(x * _power(-power), element) * _power(power)
    elif number.scope == "block and tensor":
        valid = valid.all() if number.top is None else valid
        whole = _whole(_top(known, number), E4M3.largest * element.largest)
        wanted = torch.where(whole == 0, 0, known / _like(known, element.largest) / whole)
        scales = _elements(wanted, E4M3)
        y = torch.where(scales == 0, 0, x * (1 / whole / scales))
        y = _rounded(y, number).mul_(scales * whole)
    else:
        if number.top is not None:
            valid, known = x.isfinite(), _top(known, number)
        scales = _whole(known, element.largest)
        y = _rounded(torch.where(scales == 0, 0, x / scales), number).mul_(scales)
    return torch.where(valid, y, torch.nan)


def _top(known, number):
    """The magnitude up to which the scale of a tensor reaches."""
    return known.amax() if number.top is None else _like(known, number.top)


def _rounded(x, number):
    """Elements of numbers that have been divided by their scales, perhaps where they are."""
    if x.device.type == "cpu" and numbers.serves(number):
        numbers.elements(array(x), number)
        return x
    return _elements(x, number.element)


def _elements(x, element: Element):
    """:func:`golden.formats.rules.rounded`, where numbers below 2^-126 round to 0 or are multiples of the last bit."""
    if element.exponent:
        power = (x.view(torch.int32) & _EXPONENT).view(torch.float32)
        step = power.clamp(2.0 ** element.emin, 2.0 ** element.emax).mul_(2.0 ** -element.fraction)
        y = (x / step).round_().mul_(step)
    elif element.fraction:
        y = (x * 2.0 ** element.fraction).round_().mul_(2.0 ** -element.fraction)
    else:
        y = x.round()
    return y.clamp_(-element.largest, element.largest)


def _power(exponent):
    """2^exponent for -127 to 127, as FP32, from its bits: no function of the platform's is trusted with them."""
    biased = exponent + _BIAS
    return torch.where(biased > 0, biased << _FRACTION, 1 << _FRACTION - 1).to(torch.int32).view(torch.float32)


def _like(x, value):
    """A number as a tensor: a division by a Python number may become a product with its reciprocal on a GPU."""
    return torch.full((), value, dtype=x.dtype, device=x.device)


def _whole(tops, largest):
    """:func:`golden.formats.rules.whole_scale`."""
    scale = tops / _like(tops, largest)
    return torch.where(scale < _LEAST_NORMAL, 0, scale)
