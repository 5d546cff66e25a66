"""Reports of every HBFP product, and of every one that stays FP32 for a reason, and of the operands of products."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol

import torch

from ..within import within
from .formats import Formats

#: Called with the operation, its formats (None: it stays FP32), its multiply-accumulates and why it stays.
Listener = Callable[[str, Formats | None, int, str], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


class Watcher(Protocol):
    """Who sees operands. While one watches, everything goes through :func:`golden.nn.products.product`, which is slower
    where a convolution or a frozen layer has a way of its own, and has the same bits."""

    def product(self, a: Any, b: Any, turned: bool) -> None:
        """Two :class:`golden.nn.products.Encoded` are multiplied; ``turned``: the first is transposed before."""

    def result(self, operation: str, formats: Formats, y: torch.Tensor) -> None:
        """The products seen since the last call made ``y``."""


_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def watcher() -> Watcher | None:
    """The watcher in force, or None."""
    return _WATCHER.get()


def watched(by: Watcher) -> AbstractContextManager[None]:
    """Within, ``by`` sees the operands of all products."""
    return within(_WATCHER, by)


def note(operation: str, formats: Formats | None, macs: int, reason: str = "", y: torch.Tensor | None = None) -> None:
    """Tell the listener, if there is one, and the watcher of the result ``y``."""
    if torch.compiler.is_dynamo_compiling():               # nobody listens there
        return
    listener = _LISTENER.get()
    if listener is not None:
        listener(operation, formats, macs, reason)
    watching = watcher()
    if watching is not None and formats is not None and y is not None:
        watching.result(operation, formats, y)


def listening(listener: Listener) -> AbstractContextManager[None]:
    """Within, ``listener`` is called for every product that is noted."""
    return within(_LISTENER, listener)
