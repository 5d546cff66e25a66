"""Operations on each element: functions, arithmetic of tensors and numbers, and activations."""

from collections.abc import Callable
from typing import Any

import torch

from ..vector import programs
from .activations import APART
from .operation import Elements, Operation, Program, Shape, Unsupported, calls
from .powers import power


def _function(post: str) -> Operation:
    """A function of the vector unit."""
    def form(x, approximate="none"):
        if approximate != "none":
            raise Unsupported(f"approximate={approximate!r} has another formula; approximate='none' would do")
        return Elements(programs.activation(post), (x,))
    name = {"recip": "reciprocal"}.get(post, post)
    return Operation(name, calls(name), Shape.ELEMENT, form, APART.get(name))


def _binary(name: str, of_two: Callable[[], Program], of_one: Callable[[float], Program]) -> Operation:
    """An operation of two tensors, or of a tensor and a number."""
    def form(a, b, alpha=1, rounding_mode=None):
        if alpha != 1:
            if not isinstance(b, torch.Tensor):
                raise Unsupported(f"alpha={alpha} of a number is another operation; a product before it would do")
            return Elements(programs.add_scaled(alpha if name == "add" else -alpha), (a, b))
        if rounding_mode is not None:
            raise Unsupported(f"rounding_mode={rounding_mode!r} gives whole numbers; division without it would do")
        return Elements(of_two(), (a, b)) if isinstance(b, torch.Tensor) else Elements(of_one(b), (a,))
    return Operation(name, calls(name), Shape.ELEMENT, form, _quotients if name == "div" else None)


def _quotients(a, b, rounding_mode=None):
    if rounding_mode is None:
        raise Unsupported("it has a program")
    y = a / b
    return torch.floor(y) if rounding_mode == "floor" else torch.trunc(y)


def _unary(name: str, program: Callable[..., Program]) -> Operation:
    """An operation of one tensor, whose other arguments are the program's."""
    return Operation(name, calls(name), Shape.ELEMENT, lambda x, *given: Elements(program(*given), (x,)))


def _from_parts(x, other, alpha=1):
    if alpha == 1:
        return torch.sub(other, x)
    return torch.sub(other, x, alpha=alpha) if isinstance(other, torch.Tensor) else other - x * alpha


def _from(x, number, alpha=1):
    if isinstance(number, torch.Tensor) or alpha != 1:
        raise Unsupported("it takes a multiple, or another tensor")
    return Elements(programs.difference_from(number), (x,))


def _power(x, exponent):
    if isinstance(x, torch.Tensor) and isinstance(exponent, torch.Tensor):
        raise Unsupported("its base and its exponent are tensors; a number for one of them would do")
    if not isinstance(x, torch.Tensor) or exponent not in (1, 2, 3, 4):
        raise Unsupported(f"its exponent {exponent} is none of 1, 2, 3 and 4, or its base is a number")
    return Elements(programs.power(int(exponent)) if exponent > 1 else programs.activation(), (x,))


def _between(x, y, weight):
    if isinstance(weight, torch.Tensor):
        raise Unsupported("its weight is a tensor")
    return Elements(programs.between(weight), (x, y))


OPERATIONS: tuple[Any, ...] = (
    *map(_function, ("relu", "gelu", "silu", "sigmoid", "tanh", "exp", "log", "rsqrt", "recip")),
    _binary("add", programs.add, programs.shift),
    _binary("sub", programs.subtract, lambda number: programs.shift(-number)),
    _binary("mul", programs.multiply, programs.scale),
    _binary("div", programs.quotient, programs.divide),
    _unary("hardswish", programs.hard_swish),
    _unary("leaky_relu", lambda slope=0.01: programs.leaky_relu(slope)),
    _unary("elu", programs.elu),
    _unary("hardtanh", programs.clamp),
    _unary("sqrt", programs.root), _unary("neg", programs.negate),
    _unary("abs", programs.absolute), _unary("sgn", programs.sign),
    _unary("sign", programs.sign),
    Operation("lerp", calls("lerp"), Shape.ELEMENT, _between,
              lambda x, y, weight: x + (y - x) * weight),
    *(Operation(name, calls(name), Shape.ELEMENT,
                lambda x, y, z, value=1, program=program: Elements(program(value), (x, y, z)))
      for name, program in (("addcmul", programs.add_product), ("addcdiv", programs.add_quotient))),
    Operation("rsub", calls("rsub"), Shape.ELEMENT, _from, _from_parts),
    Operation("pow", calls("pow"), Shape.ELEMENT, _power, power))
