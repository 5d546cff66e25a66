"""Compiled products with accumulation ``aligned``: docs/numerics.md, section 5."""

import ctypes
from typing import NamedTuple, Self

import numpy as np

from hbfp.format import HBFPFormat

from ..number.blocks import Blocks, per_line
from . import conversion, kernels, products, scratch
from .patches import Patches, Values

#: What int32 holds, less a bit for the half of a rounding.
_INT32 = 2 ** 30 - 1


class Operand(NamedTuple):
    """A matrix in blocks along K: mantissas as float32, and the power of two of each block's last bit.

    ``last`` is (M, blocks) of an (M, K) and (blocks, N) of a (K, N), one for each line.
    """
    mantissa: np.ndarray
    last: np.ndarray
    fmt: HBFPFormat

    @classmethod
    def of(cls, blocks: Blocks, line: int) -> Self:
        """From blocks; ``line``, the axis that is not K: 0 of an (M, K), 1 of a (K, N)."""
        return cls(np.ascontiguousarray(blocks.mantissa, np.float32),
                   per_line(blocks, blocks.exponent, line) - blocks.fmt.magnitude, blocks.fmt)

    @classmethod
    def encoded(cls, x: np.ndarray, fmt: HBFPFormat, axis: int) -> Self | None:
        """From numbers in blocks ``(1, B)`` along ``axis``, -1 or -2; None if one is Inf or NaN."""
        mantissa, exponent, invalid = conversion.mantissas(x, fmt, None, axis, np.float32)
        return None if invalid.any() else cls(mantissa, exponent - fmt.magnitude, fmt)

    @classmethod
    def gathered(cls, x: np.ndarray, rows: np.ndarray, columns: int, fmt: HBFPFormat) -> Self | None:
        """(rows, columns) in blocks of one column; row i starts at ``x.flat[rows[i]]``; None if one is Inf or NaN."""
        blocks = -(-len(rows) // fmt.terms)
        mantissa, last = scratch.empty((len(rows), columns)), np.empty((blocks, columns), np.int32)
        invalid, form = np.empty((blocks, columns), bool), kernels.format_of(fmt)
        kernels.loaded().hbfp_row_mantissas(
            x.ctypes.data, rows.ctypes.data, len(rows), columns, fmt.terms, mantissa.ctypes.data, last.ctypes.data,
            invalid.ctypes.data, ctypes.addressof(form))
        last -= fmt.magnitude
        return None if invalid.any() else cls(mantissa, last, fmt)


class Panels(NamedTuple):
    """An operand (K, N) as products with others of one format take it: ``packed`` is 2^(guard + 1) times its mantissas,
    where block sums are float32; ``most`` is that of :func:`at_once`.
    """
    operand: Operand
    packed: np.ndarray
    last: np.ndarray
    guard: int
    most: int

    @classmethod
    def of(cls, b: Operand, other: HBFPFormat, guard: int) -> Self:
        """Of an operand, for products with operands in the format ``other`` and ``guard`` fraction bits."""
        (k, n), values = b.mantissa.shape, np.ascontiguousarray(b.mantissa)
        last = np.zeros((len(b.last), -(-n // 32) * 32), np.int32)                    # whole panels
        last[:, :n] = b.last
        most = at_once(other, b.fmt, len(last), guard)
        packed = scratch.empty((k * (n + 16) if most >= 0 else 0,))
        if packed.size:
            kernels.loaded().hbfp_aligned_pack(values.ctypes.data, k, n, guard, packed.ctypes.data)
        return cls(b._replace(mantissa=values), packed, last, guard, most)


class Whole(ctypes.Structure):
    """``struct Whole`` of totals.h: what ``aligned`` sums take of an operand (K, N) beside its mantissas."""
    _fields_ = [("last", ctypes.c_void_p), ("ld", ctypes.c_int64), ("guard", ctypes.c_int32), ("most", ctypes.c_int64)]

    @classmethod
    def of(cls, x: np.ndarray, fmt: HBFPFormat, other: HBFPFormat, guard: int) -> tuple[Values, Self, np.ndarray]:
        """Of numbers in blocks ``(1, B)`` along K, to be multiplied with others in the format ``other``.

        Returns
        -------
        tuple of (Values, Whole, ndarray of bool)
            The mantissas, what goes with them, and the columns with a number that is Inf or NaN.
        """
        mantissa, exponent, invalid = conversion.mantissas(x, fmt, None, -2, np.float32)
        blocks, n = exponent.shape
        last = np.zeros((blocks, -(-n // 16) * 16), np.int32)
        last[:, :n] = exponent - fmt.magnitude
        mantissa *= 2 ** (guard + 1)
        made = cls(last.ctypes.data, last.shape[1], guard, at_once(other, fmt, blocks, guard))
        made.keep = last
        return Values.of(mantissa, fmt, kernels.Span.empty()), made, np.bitwise_or.reduce(invalid, 0)


class Places(NamedTuple):
    """Where M rows lie: element (m, k) of block j at ``row[m] + block[j] + k * stride``, in flat arrays.

    ``last_row`` and ``last_block`` say so of its block's last bit.
    """
    row: np.ndarray
    block: np.ndarray
    stride: int
    last_row: np.ndarray
    last_block: np.ndarray


def product(x: Blocks, w: Blocks, guard: int) -> np.ndarray:
    """(M, N) float32 of x (M, K) and w (K, N); sums may be anything where a block is invalid."""
    return multiply(Operand.of(x, 0), Panels.of(Operand.of(w, 1), x.fmt, guard))


def multiply(a: Operand, panels: Panels, *, turned: bool = False, places: Places | None = None) -> np.ndarray:
    """(M, N) float32 of a (M, K) and b (K, N).

    Where block sums have at most 24 bits and no running sum leaves int32, block sums are float32 and the accumulator is
    int32; else they are float64 and int64. Whether one does is known before, or else seen after so many blocks as may
    not lead there from below 2^30. The hardware's width does not matter, since it never overflows.

    Parameters
    ----------
    a : Operand
        The one.
    panels : Panels
        The other, b.
    turned : bool
        ``a`` holds a (K, M), of which the transpose is multiplied.
    places : Places, optional
        Where the rows of ``a`` lie, which then has any shape.
    """
    b = panels.operand
    (k, n), side = b.mantissa.shape, a.fmt.terms
    first, terms = products.even_blocks(k, side, 1)
    blocks = len(first)
    if places is None:
        m = a.mantissa.shape[1 if turned else 0]
        steps = ((1, m), (1, m)) if turned else ((k, 1), (blocks, 1))
        (row, stride), (last_row, last_stride) = steps
        places = Places(products.even_rows(m, row), products.even_blocks(k, side, stride)[0], stride,
                        products.even_rows(m, last_row), products.even_rows(blocks, last_stride))
    m, y = len(places.row), scratch.empty((len(places.row), n))
    a_last, flat = np.ascontiguousarray(a.last, np.int32), np.ascontiguousarray(a.mantissa)
    flush = kernels.flush_of(a.fmt.subnormals)

    def part(low, high):
        kernels.loaded().hbfp_aligned(
            flat.ctypes.data, places.row.ctypes.data + 8 * low, high - low, places.block.ctypes.data, terms.ctypes.data,
            blocks, places.stride, a_last.ctypes.data, places.last_row.ctypes.data + 8 * low,
            places.last_block.ctypes.data, flat.size, panels.packed.ctypes.data, b.mantissa.ctypes.data,
            panels.last.ctypes.data, n, panels.last.shape[1], panels.guard, panels.most,
            y.ctypes.data + 4 * low * n, ctypes.addressof(flush))
    if y.size and k:
        kernels.split(m, m * n * k * 0.05, part, 8)
    else:
        y[:] = 0
    return y


def at_once(a_fmt: HBFPFormat, b_fmt: HBFPFormat, blocks: int, guard: int) -> int:
    """Terms after which int32 must be looked at: 0 if it holds any sum, -1 if float or it do not hold a block's."""
    side = a_fmt.terms
    largest = side * a_fmt.limit * b_fmt.limit
    if largest >> 24:
        return -1
    if (largest << guard) * blocks <= _INT32:
        return 0
    return (_INT32 - 2 ** 20) // (largest << guard + 1) * side or -1      # from a running sum below 2^30 on


def stack(a: np.ndarray, b: np.ndarray, a_fmt: HBFPFormat, b_fmt: HBFPFormat,
          guard: int) -> tuple[np.ndarray, list[int]]:
    """Products of (S, M, K) and (S, K, N), of whose last two strides one is an element; blocks ``(1, B)`` along K.

    Returns
    -------
    tuple of (ndarray of float32, list of int)
        (S, M, N), and the pairs with a number that is Inf or NaN, whose products hold anything.
    """
    _, m, k = a.shape
    step, *strides = (step // 4 for step in a.strides)

    def call(count, low, other, y, *rest):
        kernels.loaded().hbfp_aligned_stack(count, a.ctypes.data + 4 * low * step, step, *strides, *other, m, k,
                                            b.shape[2], y, *rest)
    return _stacked(m, k, b, a_fmt, b_fmt, guard, call)


def patches_stack(patches: Patches, step: int, b: np.ndarray, a_fmt: HBFPFormat, b_fmt: HBFPFormat, guard: int, *,
                  turned: bool = False) -> tuple[np.ndarray, list[int]]:
    """:func:`stack` with patches, or these turned, for ``a``; see :func:`golden.fast.stack.patches_product`."""
    m, k = (patches.columns, patches.pixels) if turned else (patches.pixels, patches.columns)

    def call(count, low, other, y, *rest):
        own = Patches.from_buffer_copy(patches)
        own.x += 4 * low * step
        kernels.loaded().hbfp_aligned_patches(count, ctypes.addressof(own), step, turned, *other, b.shape[2], y, *rest)
    return _stacked(m, k, b, a_fmt, b_fmt, guard, call)


def _stacked(m, k, b, a_fmt, b_fmt, guard, call):
    """``call`` is given a count of pairs, the first, b's address and strides, the result's, and what follows."""
    count, _, n = b.shape
    y, odd = np.zeros((count, m, n), np.float32), np.zeros(count, np.uint8)
    if not y.size or not k:
        return y, []
    forms, flush = (kernels.format_of(a_fmt), kernels.format_of(b_fmt)), kernels.flush_of(a_fmt.subnormals)
    most = at_once(a_fmt, b_fmt, -(-k // a_fmt.terms), guard)
    step, *strides = (step // 4 for step in b.strides)

    def part(low, high):
        call(high - low, low, (b.ctypes.data + 4 * low * step, step, *strides), y.ctypes.data + 4 * low * m * n,
             *map(ctypes.addressof, forms), a_fmt.terms, guard, most, ctypes.addressof(flush), odd.ctypes.data + low)
    kernels.split(count, count * (m * k * n * 0.05 + (m + n) * k * kernels.ELEMENT), part)
    return y, odd.nonzero()[0].tolist()
