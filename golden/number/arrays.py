"""Arguments that are arrays: what is none, or of another type, is refused in one line; no number is cast on the way."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from hbfp.values import given


def as_array(x: Any, what: str) -> np.ndarray:
    """``x`` as an array; ``TypeError`` if it is none, such as a ragged list."""
    try:
        return np.asarray(x)
    except Exception as error:    # whatever the object's own conversion raises
        raise TypeError(f"{what} must be an array, not {type(x).__name__}") from error


def integers(x: Any, what: str, bits: int = 63) -> np.ndarray:
    """``x`` as an array of int64 with magnitudes below 2^bits.

    Raises
    ------
    TypeError
        If it holds anything else, floats among them.
    ValueError
        If a magnitude is too large.
    """
    x = as_array(x, what)
    if x.dtype.kind not in "iu":
        raise TypeError(f"{what} must be integers, not {x.dtype}")
    if x.itemsize == 8 and x.size and not -1 << bits < int(x.min()) <= int(x.max()) < 1 << bits:
        raise ValueError(f"{what} must have magnitudes below 2^{bits}, not {x.min()} to {x.max()}")
    return x.astype(np.int64, copy=False)


def patterns(x: Any, what: str = "Operand", width: int = 32) -> np.ndarray:
    """``x`` as an array of bit patterns: integers of ``width`` bits, with or without a sign.

    Raises
    ------
    TypeError
        If it holds anything else, such as floats, which a cast would make patterns of other numbers.
    ValueError
        If an integer has more bits.
    """
    x = as_array(x, what)
    if x.dtype.kind not in "iu":
        raise TypeError(f"{what} must be bit patterns, such as x.view(np.uint32) of float32 x, not {x.dtype}")
    if 8 * x.itemsize > width and x.size and not (-1 << width - 1 <= int(x.min()) and int(x.max()) < 1 << width):
        raise ValueError(f"{what} must be patterns of {width} bits, not {x.min()} to {x.max()}")
    return x


def flags(x: Any, what: str) -> np.ndarray:
    """``x`` as an array of bool, or of integers, which are true where they are not 0; ``TypeError`` otherwise."""
    x = as_array(x, what)
    if x.dtype.kind not in "biu":
        raise TypeError(f"{what} must be of type bool, not {x.dtype}")
    return x


def listed(x: Any, what: str) -> list[Any]:
    """What is in a sequence, an array or an iterator; ``TypeError`` if ``x`` is none of these."""
    if isinstance(x, (str, bytes, dict)) or not isinstance(x, Iterable):
        raise TypeError(f"{what} must be a sequence, not {type(x).__name__}")
    return list(x)


def check_axis(axis: Any, ndim: int) -> None:
    """``ValueError`` unless ``axis`` is one of ``ndim`` axes."""
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)) or not -ndim <= axis < ndim:
        raise ValueError(f"Axis must be {-ndim} to {ndim - 1}, not {given(axis)}")


def check_shape(what: str, shape: Any) -> None:
    """``ValueError`` unless ``shape`` is a tuple or list of whole numbers from 0 on."""
    if not isinstance(shape, (tuple, list)) or any(
            isinstance(side, bool) or not isinstance(side, (int, np.integer)) or side < 0 for side in shape):
        raise ValueError(f"{what} must be a tuple of whole numbers, not {given(shape)}")


def check_broadcast(what: str, *arrays: np.ndarray) -> tuple[int, ...]:
    """The shape that arrays broadcast to; ``ValueError`` if there is none."""
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in arrays)
        raise ValueError(f"{what} must have shapes that broadcast, not {shapes}") from None
