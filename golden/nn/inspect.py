"""Which matrix products of a model are not HBFP."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .matrices import counts, name_of
from .products import in_hbfp


def fp32_products(module: torch.nn.Module, *inputs: Any, **options: Any) -> list[tuple[str, str]]:
    """Run a model once and list the matrix products that it computes outside HBFP.

    Parameters
    ----------
    module : torch.nn.Module
        The model; it stays as it is, its noise and statistics too, if it is in evaluation mode.
    inputs, options
        What its ``forward`` takes.

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
        with torch.no_grad(), Watch(watch):
            module(*inputs, **options)
    return list(found)


@contextmanager
def names_running(module: torch.nn.Module, outside: Any = "") -> Iterator[Callable[[], Any]]:
    """Gives a function that says the name of the innermost module that is running, or ``outside``."""
    path: list[str] = []
    handles = []

    def leave(*_):                                     # what a hook returns would be the module's output
        path.pop()
    for name, part in module.named_modules():
        handles.append(part.register_forward_pre_hook(lambda *_, name=name: path.append(name)))
        handles.append(part.register_forward_hook(leave, always_call=True))
    try:
        yield lambda: path[-1] if path else outside
    finally:
        for handle in handles:
            handle.remove()


class Watch(TorchDispatchMode):
    """Reports every product of real numbers that runs outside HBFP: name, torch's operator, arguments and result."""
    supports_higher_order_operators = True

    def __init__(self, report: Callable[..., Any]) -> None:
        super().__init__()
        self.report = report

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if not in_hbfp() and counts(func, (args, kwargs)):
            self.report(name_of(func), func, args, kwargs, out)
        return out
