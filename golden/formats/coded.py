"""Tensors in the numbers of :mod:`golden.spec.numbers`: encode, decode, and both at once."""

from dataclasses import dataclass

import numpy as np

from hbfp.checks import check_kind

from ..number.arrays import check_axis
from ..number.blocks import as_float32, canonical
from ..spec.numbers import Element, Number
from . import rules


@dataclass(frozen=True, eq=False)
class Coded:
    """A tensor as elements and scales.

    Attributes
    ----------
    elements : ndarray of float64
        Shape of the tensor: the number that each code stands for, without its scale. NaN in all of a block, row or
        tensor that has an Inf or a NaN, and shares a scale that follows from it.
    scales : ndarray of float32
        One for each block along the axis (``ceil(length / block)`` of them), each row (1) or the tensor (all 1).
    whole : float32
        What scales the scales; 1 but for numbers with two levels.
    tops : ndarray of float32
        Largest magnitudes of what each of ``scales`` stands for; NaN or Inf where there is one.
    number : Number
    axis : int
        Along which blocks run, from the start.
    """
    elements: np.ndarray
    scales: np.ndarray
    whole: np.float32
    tops: np.ndarray
    number: Number
    axis: int

    @property
    def codes(self) -> np.ndarray:
        """Bit patterns of the elements, as the format's table has them: uint16. ValueError if there are NaNs."""
        return codes(self.elements, self.number.element)


def encode(x: np.ndarray, number: Number, *, axis: int | tuple[int, ...] = -1) -> Coded:
    """``x`` in a number: the arithmetic; :func:`encode_plain` is the definition.

    Parameters
    ----------
    x : ndarray of float32
        Of one dimension or more.
    number : Number
        Of :data:`golden.spec.numbers.NUMBERS`.
    axis : int or tuple of int
        Along which a product sums: blocks run along the first of these, and the last block may be shorter; a row is all
        that lies along all of them.

    Raises
    ------
    TypeError
        If ``x`` is not float32 or ``number`` no number.
    ValueError
        If there is no such axis.
    """
    return _encoded(x, number, axis, rules.rounded)


def encode_plain(x: np.ndarray, number: Number, *, axis: int | tuple[int, ...] = -1) -> Coded:
    """:func:`encode` by definition: the nearest entry of a table."""
    return _encoded(x, number, axis, rules.nearest)


def decode(coded: Coded) -> np.ndarray:
    """What a :class:`Coded` stands for: float32 of the tensor's shape; the product with its scale is rounded once."""
    scales = coded.scales * coded.whole
    return canonical((coded.elements * _along(scales, coded)).astype(np.float32))


def rounded(x: np.ndarray, number: Number, *, axis: int | tuple[int, ...] = -1) -> np.ndarray:
    """``x`` as a number holds it: ``decode(encode(x, number, axis=axis))``."""
    return decode(encode(x, number, axis=axis))


def codes(elements: np.ndarray, element: Element) -> np.ndarray:
    """Bit patterns (uint16) of numbers that an element has: sign and magnitude, of integers two's complement."""
    if np.isnan(elements).any():
        raise ValueError("Elements must be numbers, not NaN, which formats write in their own ways")
    values = np.array([*element.magnitudes, *[np.inf] * element.infinite])
    place = np.searchsorted(values, np.abs(elements)).astype(np.uint16)
    negative = np.signbit(elements)
    top = np.uint16(1 << element.bits - 1)
    if element.exponent:
        return place | np.where(negative, top, np.uint16(0))
    return np.where(negative, -place, place) & np.uint16((1 << element.bits) - 1)


def _encoded(x: np.ndarray, number: Number, axis: int | tuple[int, ...], way: rules.Way) -> Coded:
    x = as_float32(x)
    check_kind("Number", number, Number)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in axes:
        check_axis(each, x.ndim)
    axis = axes[0] % x.ndim
    element, whole = number.element, np.float32(1)
    tops = _tops(np.abs(x), number, axis, axes)
    finite = np.isfinite(tops)
    known = np.where(finite, tops, np.float32(0))
    if number.scope == "block":
        scales = np.ldexp(np.float32(1), rules.block_power(known, element))
    elif number.scope == "none":
        scales, finite = np.ones_like(tops), np.ones_like(finite)
    elif number.scope == "block and tensor":
        top = known.max(initial=np.float32(0)) if number.top is None else np.full((), number.top, np.float32)
        whole = np.float32(rules.whole_scale(top, rules.E4M3.largest * element.largest))
        finite = np.full_like(finite, finite.all()) if number.top is None else finite
        scales = rules.pair_scales(known, whole, element, way)
    else:
        finite = finite if number.top is None else np.isfinite(x)
        top = known if number.top is None else np.full_like(known, number.top)
        scales = rules.whole_scale(top, element.largest)
    empty = Coded(x, scales, whole, tops, number, axis)
    with np.errstate(all="ignore"):
        if number.scope == "block":
            y = x.astype(np.float64) / _along(scales.astype(np.float64), empty)         # exact
        elif number.scope == "block and tensor":
            y = x * _along(np.float32(1) / whole / scales, empty)
        else:
            y = x / _along(scales, empty)
        y = np.where(_along(scales, empty) == 0, np.float32(0), y)
        elements = way(y.astype(np.float64), element)
    return Coded(np.where(_along(finite, empty), elements, np.nan), scales, whole, tops, number, axis)


def _tops(x, number, axis, axes):
    """Largest magnitudes of what shares a scale, with the axes of :attr:`Coded.scales`; NaN where there is one."""
    if number.scope == "tensor":
        return x.max(keepdims=True, initial=np.float32(0))
    if number.scope in ("row", "none"):
        return x.max(axes, keepdims=True, initial=np.float32(0))
    starts = np.arange(0, x.shape[axis], number.block)
    return np.maximum.reduceat(x, starts, axis) if len(starts) else x


def _along(scales, coded):
    """Scales repeated over what they stand for."""
    if not coded.number.block:
        return scales
    length = coded.elements.shape[coded.axis]
    return scales.repeat(coded.number.block, coded.axis).take(np.arange(length), coded.axis)
