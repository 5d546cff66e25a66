"""Which matrix products of a model are not HBFP."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from ..ops.matrices import counts, multiplies, name_of
from .memory import foreign
from .products import in_hbfp

_FUNCTIONS = FunctionType, BuiltinFunctionType, MethodType


def fp32_products(module: torch.nn.Module, *inputs: Any,
                  named: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Run a model once and list the matrix products that it computes outside HBFP.

    Parameters
    ----------
    module : torch.nn.Module
        The model; it stays as it is, its noise and statistics too, if it is in evaluation mode.
    inputs, named
        What its ``forward`` takes: in order, and a mapping of what it takes by name.

    Returns
    -------
    list of (str, str)
        Name of the innermost module that was running ("" is the model) and torch's operation, in order, each pair
        once.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
    found: dict[tuple[str, str], None] = {}
    with names_running(module) as running:
        def watch(operation, *_):
            found.setdefault((running(), operation))
        with watching(watch):
            module(*inputs, **named or {})
    return list(found)


@contextmanager
def names_running(module: torch.nn.Module, outside: Any = "") -> Iterator[Callable[[], Any]]:
    """Within, the function that this gives says the name of the innermost module that is running, or ``outside``."""
    path: list[str] = []
    handles = []

    def leave(*_):                                     # what a hook returns would be the module's output
        path.pop()
    for name, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):     # has no such hooks: it runs under the name of what it is in
            continue
        handles.append(part.register_forward_pre_hook(lambda *_, name=name: path.append(name)))
        handles.append(part.register_forward_hook(leave, always_call=True))
    try:
        yield lambda: path[-1] if path else outside
    finally:
        for handle in handles:
            handle.remove()


class Mode(TorchDispatchMode):
    """A dispatch mode that sees what operators are made of, too, and what higher-order ones (``torch.cond``) call."""
    supports_higher_order_operators = True

    def parts(self, func: Any, args: Any, kwargs: Any) -> Any:
        """``func(*args, **kwargs)`` with the mode in force in what it is made of; NotImplemented if that is nothing."""
        def under(call):
            def seen(*args):
                with self:
                    return call(*args)
            return seen
        if any(isinstance(arg, torch.Tensor) and foreign(arg) for arg in args):
            return NotImplemented                        # of such a tensor an operator may be whole
        if isinstance(func, HigherOrderOperator):
            if multiplies(func):
                return NotImplemented
            args, kwargs = tree_map_only((torch.nn.Module, *_FUNCTIONS), under, (args, kwargs))
            return func(*args, **kwargs)
        with self:                                       # in inference mode torch has not done it before
            return func.decompose(*args, **kwargs)


class Watch(Mode):
    """Reports every product of real numbers that runs outside HBFP: name, torch's operator, arguments and result."""

    def __init__(self, report: Callable[..., Any]) -> None:
        super().__init__()
        self.report = report

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = self.parts(func, args, kwargs)
        if out is not NotImplemented:
            return out
        out = func(*args, **kwargs)
        if not in_hbfp() and counts(func, (args, kwargs)):
            self.report(name_of(func), func, args, kwargs, out)
        return out


@contextmanager
def watching(report: Callable[..., Any]) -> Iterator[None]:
    """Within, :class:`Watch` reports; nothing is compiled, so that all of a model runs where it can be seen."""
    with torch.no_grad(), torch.compiler.set_stance("force_eager"), Watch(report):
        yield
