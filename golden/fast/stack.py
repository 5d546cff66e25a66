"""Compiled products of many pairs of matrices in one call, each pair in its own formats."""

import ctypes
from collections.abc import Sequence

import numpy as np

from hbfp.format import HBFPFormat

from . import kernels, lanes, scratch
from .kernels import ELEMENT, MULTIPLICATION, Flush, Format
from .patches import Patches


class Formats:
    """Formats of the pairs, as the kernel reads them.

    Parameters
    ----------
    a, b : sequence of HBFPFormat
        One for each pair; both of a pair have blocks of equal length along K.
    sums : sequence of str, optional
        For each pair what :func:`golden.fast.kernels.adds`; FP32 without it.
    """

    def __init__(self, a: Sequence[HBFPFormat], b: Sequence[HBFPFormat], sums: Sequence[str] | None = None) -> None:
        self.a, self.b = ((Format * len(a))(*map(kernels.format_of, side)) for side in (a, b))
        self.high = np.array([[fmt.block[0] for fmt in side] for side in (a, b)], np.int64)
        self.terms = np.array([fmt.terms for fmt in a], np.int64)
        self.flush = (Flush * len(a))(*(kernels.flush_of(fmt.subnormals, each)
                                          for fmt, each in zip(a, sums or ["fp32"] * len(a), strict=True)))

        self.none = np.zeros(len(a), bool)             # nothing is skipped
        form, eight, flush = ctypes.sizeof(Format), 8, ctypes.sizeof(Flush)
        self._places = [(ctypes.addressof(self.a), form), (ctypes.addressof(self.b), form),
                        *((each.ctypes.data, eight) for each in (*self.high, self.terms)),
                        (ctypes.addressof(self.flush), flush)]

    def addresses(self, first: int) -> list[int]:
        """What the kernel takes, from a pair on."""
        return [start + first * size for start, size in self._places]


def product(a: np.ndarray, b: np.ndarray, formats: Formats, skip: np.ndarray | None = None) -> np.ndarray:
    """``q(a[i]) q(b[i])`` for each pair i in block order: :func:`golden.fast.kernels.encoded`, then ``multiply``.

    Parameters
    ----------
    a, b : ndarray of float32
        (pairs, M, K) and (pairs, K, N); of the last two strides one is an element.
    formats : Formats
        Of the pairs; as many as there are.
    skip : ndarray of bool, optional
        (pairs,): those to leave alone.

    Returns
    -------
    ndarray of float32
        (pairs, M, N); NaN is canonical. What is skipped holds anything.
    """
    _, m, k = a.shape
    step, am, ak = a.strides
    at = a.ctypes.data
    return _each(m, k, b, formats, skip, lambda count, low, other, *rest: kernels.loaded().hbfp_stack(
        count, at + low * step, step // 4, am // 4, ak // 4, *other, m, k, b.shape[2], *rest))


def patches_product(patches: Patches, step: int, b: np.ndarray, formats: Formats, skip: np.ndarray | None = None, *,
                    turned: bool = False) -> np.ndarray:
    """:func:`product` with the patches of several models, or these turned, for ``a``.

    Parameters
    ----------
    patches : Patches
        Those of the first model.
    step : int
        Numbers from a model's tensor to that of the next one.
    b, formats, skip
        As of :func:`product`.
    turned : bool
        K runs over the pixels, M over what a patch holds.
    """
    m, k = (patches.columns, patches.pixels) if turned else (patches.pixels, patches.columns)

    def call(count, low, other, *rest):
        own = Patches.from_buffer_copy(patches)
        own.x += 4 * low * step
        kernels.loaded().hbfp_stack_patches(count, ctypes.addressof(own), step, turned, *other, b.shape[2], *rest)
    return _each(m, k, b, formats, skip, call)


class _Drawn(ctypes.Structure):
    """``struct Drawn`` of stack.h."""
    _fields_ = [(name, ctypes.c_void_p if name in ("a", "b", "y", "fa", "fb", "flush") else ctypes.c_int64) for name in
                "a a_step am ak b b_step bk bn m k n y fa fb flush high_a high_b".split()]


def drawn(products: Sequence[tuple[np.ndarray, np.ndarray, HBFPFormat, HBFPFormat]], sums: str,
          stream: lanes.Generators) -> list[np.ndarray]:
    """``q(a[i]) q(b[i])`` of some products for each pair i, the pairs one after the other with all their products.

    Formats that are ``stochastic``, which have blocks ``(1, B)``, draw from ``stream``, for which they are wide enough
    (:func:`golden.fast.lanes.fits`): line by line along K, a before b.

    Parameters
    ----------
    products : sequence of tuple
        (pairs, M, K) and (pairs, K, N) float32, and the formats of both; see :func:`product`. All have blocks of equal
        length along K.
    sums : str
        What :func:`golden.fast.kernels.adds`.
    stream : golden.fast.lanes.Generators
        The generators.

    Returns
    -------
    list of ndarray of float32
        (pairs, M, N) of each product.
    """
    found, given = [], (_Drawn * len(products))()
    for where, (a, b, a_fmt, b_fmt) in zip(given, products, strict=True):
        count, m, k = a.shape
        found.append(y := np.zeros((count, m, b.shape[2]), np.float32))
        forms = [*map(kernels.format_of, (a_fmt, b_fmt)), kernels.flush_of(a_fmt.subnormals, sums)]
        a_steps, b_steps = ([step // 4 for step in each.strides] for each in (a, b))
        where.__init__(a.ctypes.data, *a_steps, b.ctypes.data, *b_steps, m, k, b.shape[2], y.ctypes.data,
                       *map(ctypes.addressof, forms), a_fmt.block[0], b_fmt.block[0])
    with lanes.Running(stream) as running:
        kernels.loaded().hbfp_stack_drawn(count, ctypes.addressof(given), len(given), a_fmt.terms, running)
    return found


def _each(m, k, b, formats, skip, call):
    """(pairs, M, N): ``call`` is given a count of pairs, the first, b's address and strides, and what follows N."""
    count, _, n = b.shape
    y = scratch.empty((count, m, n))
    nothing = skip is not None and bool(skip.all())
    skip = formats.none if skip is None else np.ascontiguousarray(skip, bool)
    step, bk, bn = b.strides
    at_b, at_y, at_skip = b.ctypes.data, y.ctypes.data, skip.ctypes.data

    def part(low, last):
        call(last - low, low, (at_b + low * step, step // 4, bk // 4, bn // 4), at_y + 4 * low * m * n,
             *formats.addresses(low), at_skip + low)
    if not k:
        y[:] = 0
    elif y.size and not nothing:
        kernels.split(count, count * (m * k * n * MULTIPLICATION + (m + n) * k * ELEMENT), part)
    return y
