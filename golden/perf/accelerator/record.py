"""Records of the cycle model: the registers, and wires of a cycle, that a unit has, by name."""

from typing import Any

import numpy as np

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
