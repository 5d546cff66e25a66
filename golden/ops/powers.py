"""Powers, roots and logarithms, variances and norms, and activations that are made of others."""

import math
from typing import Any

import torch

from .operation import Operation, Shape, Unsupported, calls, dims_of

aten = torch.ops.aten
_LN2, _LN10 = math.log(2), math.log(10)
#: The largest whole exponent that is a product of as many factors.
_MOST = 16


def power(x: Any, exponent: Any) -> torch.Tensor:
    """x to the power of a number, by products, roots and reciprocals; by exp and log where these do not do."""
    if not isinstance(x, torch.Tensor):
        if x <= 0:
            raise Unsupported(f"its base is {x}; one above 0 would do")
        return torch.exp(exponent * math.log(x))
    if isinstance(exponent, torch.Tensor):
        raise Unsupported("its base and its exponent are tensors; a number for one of them would do")
    if exponent == 0:
        return torch.ones_like(x)
    if exponent < 0:
        return torch.rsqrt(x) if exponent == -0.5 else torch.reciprocal(
            x if exponent == -1 else torch.pow(x, -exponent))
    whole, half = int(exponent), exponent - int(exponent)
    if whole <= _MOST and half in (0, 0.5):
        y = x
        for _ in range(whole - 1):
            y = y * x
        return y if not half else torch.sqrt(x) * y if whole else torch.sqrt(x)
    return torch.exp(torch.log(x) * exponent)


def _deviations(x, dim, unbiased, correction):
    """Variance and mean along dimensions, and these: the mean, differences from it, and the sum of their squares times
    a reciprocal.
    """
    if isinstance(dim, bool):                              # var(x, unbiased)
        dim, unbiased = None, dim
    dims = dims_of(x, dim)
    mean = x.mean(dims, keepdim=True)
    apart = x - mean
    left = math.prod(x.shape[d] for d in dims) - (int(unbiased) if correction is None else correction)
    squares = (apart * apart).sum(dims, keepdim=True)
    return squares * (1 / left if left > 0 else math.inf), mean, dims


def variance(x: torch.Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *,
             correction: float | None = None) -> torch.Tensor:
    """``var``."""
    y, _, dims = _deviations(x, dim, unbiased, correction)
    return y if keepdim else y.squeeze(dims)


def _deviation(*args, **options):
    return torch.sqrt(variance(*args, **options))


def _variance_and_mean(x, dim=None, unbiased=True, keepdim=False, *, correction=None):
    y, mean, dims = _deviations(x, dim, unbiased, correction)
    return (y, mean) if keepdim else (y.squeeze(dims), mean.squeeze(dims))


def vector_norm(x: torch.Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
                ) -> torch.Tensor:
    """Squares are added up to one row, ascending, and this in the order of the lanes; those along dimensions as a sum.
    """
    if dtype not in (None, torch.float32):
        raise Unsupported(f"it gives {dtype}; numbers of float32 would do".replace("torch.", ""))
    dims, whole = list(dims_of(x, dim)), dim is None or isinstance(dim, (list, tuple)) and not dim
    if ord == 2 and whole and not keepdim:
        row = 1 if x.dim() > 2 else x.dim() - 1
        squares = x.pow(2)
        if x.dim() > 1:
            squares = squares.sum([d for d in range(x.dim()) if d != row])
        return squares.sum().sqrt()
    if ord == 2:
        return torch.sqrt((x * x).sum(dims, keepdim=keepdim))
    if ord == 1:
        return x.abs().sum(dims, keepdim=keepdim)
    if ord in (math.inf, -math.inf):
        return (torch.amax if ord > 0 else torch.amin)(x.abs(), dims, keepdim)
    raise Unsupported(f"it is a norm of order {ord}; 1, 2 or inf would do")


def _norm(x, p=2, dim=None, keepdim=False, dtype=None):
    return vector_norm(x, 2 if p is None else p, dim, keepdim, dtype)


def _prelu(x, weight):
    return torch.relu(x) - torch.relu(-x) * weight


def _prelu_gradient(gradient, x, weight):
    scaled = gradient * weight
    below = scaled - aten.threshold_backward(scaled, x, 0)
    return aten.threshold_backward(gradient, x, 0) + below, torch.relu(-x) * -gradient


def _threshold(x, threshold, value):
    there = aten.threshold_backward(torch.ones_like(x), x - threshold, 0)
    return aten.threshold_backward(x, x - threshold, 0) + (1 - there) * value


def _hard_sigmoid(x):
    return torch.clamp(x + 3, 0.0, 6.0) * (1 / 6)


def _exp_less_one(x):
    half = torch.tanh(x * 0.5)
    return half * torch.exp(x) + half


def _shrunk(x, bound=0.5):
    return torch.where(x.abs() > bound, x - torch.sign(x) * bound, x * 0)


def _hard_shrunk(x, bound=0.5):
    return torch.where(x.abs() <= bound, 0.0, x)


def _parts(name, parts, gradient=False):
    return Operation(name.strip("_"), calls(name), Shape.PARTS, parts=parts, gradient=gradient)


OPERATIONS = (
    _parts("std", _deviation), _parts("var_mean", _variance_and_mean), _parts("linalg_vector_norm", vector_norm),
    _parts("norm", _norm),
    _parts("_prelu_kernel", _prelu), _parts("_prelu_kernel_backward", _prelu_gradient, True),
    _parts("celu", lambda x, alpha=1.0: aten.elu(x, alpha, 1.0, 1 / alpha)),
    _parts("hardsigmoid", _hard_sigmoid),
    _parts("hardsigmoid_backward", lambda gradient, x: aten.hardtanh_backward(gradient * (1 / 6), x, -3.0, 3.0), True),
    _parts("threshold", _threshold), _parts("softshrink", _shrunk), _parts("hardshrink", _hard_shrunk),
    _parts("log1p", lambda x: torch.log(x + 1)), _parts("expm1", _exp_less_one),
    _parts("exp2", lambda x: torch.exp(x * _LN2)), _parts("log2", lambda x: torch.log(x) * (1 / _LN2)),
    _parts("log10", lambda x: torch.log(x) * (1 / _LN10)),
    _parts("cosh", lambda x: (torch.exp(x) + torch.exp(-x)) * 0.5),
    _parts("sinh", lambda x: (_exp_less_one(x) - _exp_less_one(-x)) * 0.5))
