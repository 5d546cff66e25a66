"""Context variables that have a value within a block of code."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Value = TypeVar("Value")


@contextmanager
def within(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Within, the variable has this value; behind, whatever happens, the one before."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
