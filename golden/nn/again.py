"""Gradients of gradients, and transforms of torch.func: docs/numerics.md, section 9.

A product ``y`` of x and w has two gradients, which are products, too: ``gx`` of g and w, ``gw`` of g and x. These three
are all that differentiating them gives again, with another operand in the place of x, of w or of g, in whose format it
is. So two functions of autograd are enough, of whatever product, as often as it is differentiated.
"""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import torch

from ..within import within
from .formats import Formats
from .once import once_differentiable
from .side import here

#: A product as a function of x and w.
Run = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_UNREAD = ContextVar("unread", default=False)
#: Why a transform is refused.
NO_FORWARD = ("HBFP products do not run in forward mode (jvp, jacfwd, dual numbers): gradients come from backward(), "
              "torch.func.grad and vjp")
NO_RULE = ("Under torch.func HBFP products need rounding 'rne' or 'truncate', or eval(), and no mode 'emulator': noise "
           "has no order there")


def unread() -> AbstractContextManager[None]:
    """Within, nobody reads what products give: they run for the sake of their gradients alone."""
    return within(_UNREAD, True)


def is_unread() -> bool:
    """Whether the caller is within :func:`unread`."""
    return _UNREAD.get()


def made(make: Callable[[], torch.Tensor], like: torch.Tensor, shape: Callable[[], Sequence[int]]) -> torch.Tensor:
    """What a forward pass gives: what ``make`` makes, or, where it is unread, any numbers of the shape."""
    return like.new_empty(tuple(shape())) if is_unread() else make()


def transformed(*tensors: torch.Tensor | None) -> bool:
    """Whether a transform of ``torch.func`` has one of the tensors; what torch.compile traces it does not."""
    return not torch.compiler.is_compiling() and any(
        t is not None and torch._C._functorch.is_functorch_wrapped_tensor(t) for t in tensors)


def transforms() -> list[Any]:
    """The transforms of ``torch.func`` that are in force."""
    return [each.key() for each in torch._C._functorch.get_interpreter_stack() or ()]


def forward_mode() -> bool:
    """Whether one of them is a forward-mode derivative."""
    return torch._C._functorch.TransformType.Jvp in transforms()


def rule(formats: Formats, run: Run) -> Run | None:
    """``run``, which a product leaves as ``ctx.run`` for :func:`differentiable`; None where it would draw noise."""
    return None if any(fmt.rounding == "stochastic" for fmt in formats.roles) else run


def applied(run: Run, x: torch.Tensor, w: torch.Tensor, formats: Formats) -> torch.Tensor:
    """``run(x, w)``, under transforms of ``torch.func``, too.

    Raises
    ------
    NotImplementedError
        If a transform runs, and the product rounds stochastically.
    """
    if not transformed(x, w):
        return run(x, w)
    if rule(formats, run) is None:
        raise NotImplementedError(NO_RULE)
    return Product.apply(x, w, run)


def differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of ``backward`` of a product whose first two arguments are x and w: gradients have gradients.

    They are what they are without it. Where ``ctx.run`` is None, and with side arithmetic, it is an error, as of
    :func:`golden.nn.once.once_differentiable`.
    """
    once = once_differentiable(backward)

    @functools.wraps(backward)
    def alone(ctx: Any, g: torch.Tensor) -> Any:
        if not torch.is_grad_enabled() or ctx.run is None or here():
            return once(ctx, g)
        x, w = ctx.saved_tensors
        found = (Gradient.apply(g, x, w, ctx.run, which) if need else None
                 for which, need in enumerate(ctx.needs_input_grad[:2]))
        return *found, *[None] * (len(ctx.needs_input_grad) - 2)
    return alone


def looped(function: Callable[..., torch.Tensor], size: int, axes: Any, *given: Any) -> tuple[torch.Tensor, int]:
    """What ``vmap`` asks of a function: its results for each element of a batch, one by one, on a new first axis."""
    def at(place):
        return (each if axis is None else place(each.movedim(axis, 0)) for each, axis in zip(given, axes, strict=True))
    if not size:                                           # one of zeros says the shape
        y = function(*at(lambda each: each.new_zeros(each.shape[1:])))
        return y.new_zeros(0, *y.shape), 0
    return torch.stack([function(*at(lambda each, i=i: each[i])) for i in range(size)]), 0


class Product(torch.autograd.Function):
    """``run(x, w)``."""

    @staticmethod
    def forward(x: torch.Tensor, w: torch.Tensor, run: Run) -> torch.Tensor:
        """Without autograd."""
        return run(x.detach(), w.detach())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Keep what gradients are made of."""
        x, w, ctx.run = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of x and w."""
        x, w = ctx.saved_tensors
        need = ctx.needs_input_grad
        return (Gradient.apply(g, x, w, ctx.run, 0) if need[0] else None,
                Gradient.apply(g, x, w, ctx.run, 1) if need[1] else None, None)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], x: torch.Tensor, w: torch.Tensor,
             run: Run) -> tuple[torch.Tensor, int]:
        """The loop."""
        return looped(Product.apply, info.batch_size, in_dims, x, w, run)


class Gradient(torch.autograd.Function):
    """The gradient of x (``which`` 0), a product of g and w, or of w (1), a product of g and x, where y has gradient g.

    The tensor that it is the gradient of has no say in it but for its shape.
    """

    @staticmethod
    def forward(g: torch.Tensor, x: torch.Tensor, w: torch.Tensor, run: Run, which: int) -> torch.Tensor:
        """What the product's own backward pass gives."""
        pair = [x.detach(), w.detach()]
        pair[which].requires_grad_()
        with torch.enable_grad(), unread():
            y = run(*pair)
        found, = torch.autograd.grad(y, pair[which], g.detach())
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Keep what gradients are made of."""
        g, x, w, ctx.run, ctx.which = inputs
        ctx.save_for_backward(g, x, w)

    @staticmethod
    def backward(ctx: Any, h: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """``h``, the gradient of a gradient of x or w, stands in the place of x or w."""
        (g, x, w), run, need = ctx.saved_tensors, ctx.run, ctx.needs_input_grad
        x, w = (h, w) if ctx.which == 0 else (x, h)
        other = 1 - ctx.which
        return (Product.apply(x, w, run) if need[0] else None,
                *(Gradient.apply(g, x, w, run, which) if which == other and need[1 + which] else None
                  for which in (0, 1)), None, None)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], g: torch.Tensor, x: torch.Tensor, w: torch.Tensor, run: Run,
             which: int) -> tuple[torch.Tensor, int]:
        """The loop."""
        return looped(Gradient.apply, info.batch_size, in_dims, g, x, w, run, which)
