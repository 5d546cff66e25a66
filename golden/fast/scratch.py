"""Memory for large arrays that come and go with every product: what one leaves, the next takes.

The C library gives memory of such sizes back to the system, and then each page of a new array costs a fault.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

#: Powers of two of the sizes in bytes that are kept: smaller memory the C library keeps, larger is rare.
_LEAST, _MOST = 18, 24
#: For each power of two the memory that no array has, the last returned last; at most so many bytes of each size, or
#: four arrays.
_FREE: dict[int, deque[np.ndarray]] = {power: deque(maxlen=max(1 << _MOST - power, 4))
                                       for power in range(_LEAST, _MOST + 1)}
_LINE = 64


class _Lent:
    """Memory of an array: free again when that and all its views are gone, in whatever thread."""

    def __init__(self, memory: np.ndarray, free: deque[np.ndarray], shape: tuple[int, ...], kind: str) -> None:
        self.memory, self.free = memory, free
        at = memory.ctypes.data
        self.__array_interface__ = {"shape": shape, "typestr": kind, "data": (at + -at % _LINE, False), "version": 3}

    def __del__(self) -> None:
        self.free.append(self.memory)                  # a full deque drops the oldest


def empty(shape: Sequence[int], dtype: Any = np.float32) -> np.ndarray:
    """``numpy.empty(shape, dtype)``, of memory that was an array's before where there is any; types of 4 bytes."""
    power = (4 * math.prod(shape) - 1).bit_length()
    if not _LEAST <= power <= _MOST:
        return np.empty(shape, dtype)
    free = _FREE[power]
    try:
        memory = free.pop()
    except IndexError:
        memory = np.empty((1 << power) + _LINE, np.uint8)
    return np.asarray(_Lent(memory, free, tuple(shape), np.dtype(dtype).str))
