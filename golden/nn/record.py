"""Who wants to hear of every HBFP product, and of every one that stays FP32 for a reason."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from .formats import Formats

#: Called with the operation, its formats (None: it stays FP32), its multiply-accumulates and why it stays.
Listener = Callable[[str, Formats | None, int, str], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def note(operation: str, formats: Formats | None, macs: int, reason: str = "") -> None:
    """Tell the listener, if there is one."""
    if torch.compiler.is_dynamo_compiling():               # nobody listens there
        return
    listener = _LISTENER.get()
    if listener is not None:
        listener(operation, formats, macs, reason)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within, ``listener`` hears."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
