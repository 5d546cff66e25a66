"""Compiled conversions of the numbers of :mod:`golden.spec.numbers`; :mod:`golden.formats.coded` defines them."""

import ctypes
from functools import cache

import numpy as np

from ..spec.numbers import Number
from . import kernels

#: Nanoseconds, roughly, of one thread for an element.
_ELEMENT = 0.5


class _Number(ctypes.Structure):
    """``struct Number`` of numbers.h."""
    _fields_ = [*((name, ctypes.c_float) for name in ("least", "most", "unit", "largest")),
                ("emax", ctypes.c_int32), ("block", ctypes.c_int32)]


@cache
def _of(number: Number) -> _Number:
    element = number.element
    least, most = (element.emin, element.emax) if element.exponent else (0, 0)
    return _Number(2.0 ** least, 2.0 ** most, 2.0 ** -element.fraction, element.largest, element.emax, number.block)


def serves(number: Number) -> bool:
    """Whether the kernels have a number: those with scales."""
    return number.scope != "none" and kernels.library() is not None


def in_blocks(x: np.ndarray, number: Number, axis: int) -> np.ndarray:
    """``x`` (float32, C order) as a number of scope ``block`` holds it, with blocks along an axis, from the start."""
    y, length = np.empty_like(x), x.shape[axis]
    outer, inner = int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis + 1:]))

    def part(first, last):
        at = 4 * first * length * inner
        kernels.loaded().hbfp_number_blocks(x.ctypes.data + at, y.ctypes.data + at, last - first, length, inner,
                                            ctypes.byref(_of(number)))
    kernels.split(outer, x.size * _ELEMENT, part)
    return y


def elements(x: np.ndarray, number: Number) -> np.ndarray:
    """``x`` (float32, C order), which has been divided by its scales, rounded to a number's elements, where it is."""
    flat = x.reshape(-1)

    def part(first, last):
        kernels.loaded().hbfp_number_elements(flat.ctypes.data + 4 * first, flat.ctypes.data + 4 * first, last - first,
                                              ctypes.byref(_of(number)))
    kernels.split(flat.size, flat.size * _ELEMENT, part)
    return x
