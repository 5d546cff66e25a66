"""Activations that are made of others: GELU by tanh, softplus, mish, log sigmoid, and log of sums of exponentials."""

import math
from collections.abc import Callable
from typing import Any

import torch

from ..vector import programs
from .extremes import bounded
from .operation import Elements, Operation, Shape, Unsupported, calls, dims_of

aten = torch.ops.aten
_CUBE, _ROOT = 0.044715, math.sqrt(2 / math.pi)
#: From here on softplus is its operand in FP32, so that no threshold makes a difference.
_ALL = 15


def _inner(x):
    """tanh of the polynomial of GELU's approximation, and the square of x."""
    square = x * x
    return torch.tanh((square * x * _CUBE + x) * _ROOT), square


def _gelu(x, approximate="none"):
    if approximate != "tanh":
        raise Unsupported(f"approximate={approximate!r} has no formula; 'none' or 'tanh' would do")
    return x * 0.5 * (_inner(x)[0] + 1)


def _gelu_gradient(gradient, x, approximate="none"):
    if approximate != "tanh":
        raise Unsupported(f"approximate={approximate!r} has no formula; 'none' or 'tanh' would do")
    inner, square = _inner(x)
    slope = (square * (3 * _CUBE) + 1) * _ROOT
    return aten.tanh_backward(slope, inner) * (x * 0.5) * gradient + (inner + 1) * 0.5 * gradient


def above_zero(x: torch.Tensor) -> torch.Tensor:
    """log(1 + exp(x)) without what is there for x > 0: log(exp(-|x|) + 1)."""
    return torch.log(torch.exp(-x.abs()) + 1)


def _softplus(x, beta=1, threshold=20):
    if beta != 1:
        return _softplus(x * beta, 1, threshold) * (1 / beta)
    y = torch.relu(x) + above_zero(x)
    return y if threshold >= _ALL else torch.where(x > threshold, x, y)


def _softplus_gradient(gradient, x, beta, threshold):
    x = x if beta == 1 else x * beta
    y = torch.sigmoid(x) * gradient
    return y if threshold >= _ALL else torch.where(x > threshold, gradient, y)


def _mish(x):
    return x * torch.tanh(_softplus(x))


def _mish_gradient(gradient, x):
    inner = torch.tanh(_softplus(x))
    return (aten.tanh_backward(torch.sigmoid(x), inner) * x + inner) * gradient


def _log_sigmoid(x):
    return -(torch.relu(-x) + above_zero(x)), x.new_empty(0)


def _log_sigmoid_gradient(gradient, x, kept):
    return torch.sigmoid(-x) * gradient


def _log_sum(x, dim, keepdim=False):
    dims = dims_of(x, dim)
    most = x.amax(dims, keepdim=True)
    total = torch.log(torch.exp(x - most).sum(dims, keepdim=True)) + most
    return total if keepdim else total.squeeze(dims)


def _clamp(x, low=None, high=None):
    if isinstance(low, torch.Tensor) or isinstance(high, torch.Tensor):
        raise Unsupported("its bounds are tensors")
    return Elements(programs.clamp(-math.inf if low is None else low, math.inf if high is None else high), (x,))


def _parts(name, parts, gradient=False):
    return Operation(name, calls(name), Shape.PARTS, parts=parts, gradient=gradient)


#: What an operation that the table has is made of where its form does not serve.
APART: dict[str, Callable[..., Any]] = {"gelu": _gelu, "gelu_backward": _gelu_gradient}
OPERATIONS = (
    Operation("clamp", calls("clamp", "clamp_min"), Shape.ELEMENT, _clamp, bounded),
    Operation("clamp_max", calls("clamp_max"), Shape.ELEMENT, lambda x, high: _clamp(x, None, high),
              lambda x, high: bounded(x, None, high)),
    _parts("softplus", _softplus), _parts("mish", _mish), _parts("logsumexp", _log_sum),
    Operation("log_sigmoid", calls("log_sigmoid_forward"), Shape.PARTS, parts=_log_sigmoid),
    _parts("softplus_backward", _softplus_gradient, True), _parts("mish_backward", _mish_gradient, True),
    _parts("log_sigmoid_backward", _log_sigmoid_gradient, True))
