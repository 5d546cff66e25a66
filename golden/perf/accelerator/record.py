"""Records of the cycle model: the registers, and wires of a cycle, that a unit has, by name; and what steps them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core.registry import CPUDispatcher

#: A record, in and outside of compiled functions; its fields are those that its dtype has.
Record = Any


def record(numbers: str = "", flags: str = "", **nested: Any) -> np.dtype[np.void]:
    """A dtype of records.

    Parameters
    ----------
    numbers, flags : str
        Names of integers, and of booleans.
    **nested
        Name -> dtype of a record in it, or dtype and shape.
    """
    fields: list[Any] = [(name, np.int64) for name in numbers.split()] + [(name, np.bool_) for name in flags.split()]
    fields += [(name, *kind) if isinstance(kind, tuple) else (name, kind) for name, kind in nested.items()]
    return np.dtype(fields, align=True)


def made(kind: np.dtype[np.void], **values: Any) -> Record:
    """A record with these values, and zeros."""
    result = np.zeros(1, kind)[0]
    for name, value in values.items():
        result[name] = value
    return result


class _Part(CPUDispatcher):
    """A compiled function that only compiled functions call."""

    def __call__(self, *arguments):
        raise TypeError(f"{self.py_func.__name__} is a part of the compiled stepper: Python cannot call it")


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only compiled ones call: without the ways into it, a third less is to be compiled."""
    found = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    found.__class__ = _Part
    return found
