"""Named arguments that many calls share, as types and as a check that refuses other names in one line."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any, TypedDict, TypeVar

import torch

from ..formats.names import Operand

#: A model, of which a call gives the same class again, or its twin, which is a subclass; and an optimiser.
Model = TypeVar("Model", bound=torch.nn.Module)
Optimiser = TypeVar("Optimiser", bound=torch.optim.Optimizer)
_Function = TypeVar("_Function", bound=Callable[..., Any])


class FormatOptions(TypedDict, total=False):
    """What :meth:`golden.nn.Formats.of` takes by name, and with it every call that makes formats of its arguments.

    Attributes
    ----------
    w, g : HBFPFormat, Number or str
        Formats of weights and of gradients of the output, where they are not that of the inputs.
    order, accumulate, guard, growth, mode
        As of :class:`golden.nn.Formats`.
    """
    w: Operand | str
    g: Operand | str
    order: str
    accumulate: str
    guard: int
    growth: int | None
    mode: str


#: The names alone.
FORMAT_OPTIONS = tuple(FormatOptions.__annotations__)


def untraced(function: _Function) -> _Function:
    """``torch.compiler.disable`` as a decorator, which by itself takes a function's types away."""
    return torch.compiler.disable(function)


def check_options(call: Callable[..., Any], options: Mapping[str, object]) -> None:
    """Raise ``TypeError`` with one line if an option of ``call`` is none of :class:`FormatOptions`.

    Type checkers say so before; this is for those who run none. The line names what was likely meant.
    """
    unknown = [name for name in options if name not in FORMAT_OPTIONS]
    if not unknown:
        return
    own = [name for name, each in signature(call).parameters.items() if each.kind != Parameter.VAR_KEYWORD]
    known = [*own, *FORMAT_OPTIONS]
    near = get_close_matches(unknown[0], known, 1)
    meant = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
    raise TypeError(f"{call.__qualname__}() has no argument {unknown[0]!r}; {meant}")
