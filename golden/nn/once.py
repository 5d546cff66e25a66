"""What the autograd functions of HBFP share: results that may be changed in place, and gradients that are made once."""

import functools
from collections.abc import Callable
from typing import Any

import torch

#: Why a gradient is not differentiated.
TWICE = ("Gradients of HBFP products with stochastic rounding, side arithmetic or mode 'emulator', of programs and of "
         "fused jobs cannot be differentiated again (create_graph=True, as for a gradient penalty); those of products "
         "that round to nearest, and of layers that are left in FP32 (exclude=...), can")


def unviewed(y: torch.Tensor) -> torch.Tensor:
    """A function's result as no view to autograd, which would refuse in-place operations on a view."""
    return y.data


class _Final(torch.autograd.Function):
    """Gradients as they are, whose own gradients are refused."""

    @staticmethod
    def forward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        return tuple(None if g is None else unviewed(g) for g in gradients)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        raise NotImplementedError(TWICE)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of ``backward``: to differentiate its gradients is an error.

    ``torch.autograd.function.once_differentiable`` takes them for constants where the gradient that comes in is one,
    though they depend on the operands, too.
    """
    @functools.wraps(backward)
    def alone(ctx: Any, *gradients: torch.Tensor) -> Any:
        with torch.no_grad():
            found = backward(ctx, *gradients)
        if not torch.is_grad_enabled():
            return found
        return _Final.apply(*(None if g is None else g.detach().requires_grad_() for g in found))
    return alone
