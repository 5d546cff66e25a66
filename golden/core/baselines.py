"""Cores of other numbers in the same dataflow: products, and the floats by the name that a design gives their kind."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hbfp.arithmetic import KINDS
from hbfp.checks import check_range

from .. import fp32
from ..matmul import check_operands
from ..number.arrays import integers, patterns
from ..number.blocks import as_float32
from ..number.to_fp32 import add_fp32, add_product_fp32, flush, round_fp32, to_bf16, to_fp16, to_int8


def matmul_fp32(x: np.ndarray, w: np.ndarray, rows: int) -> np.ndarray:
    """The FP32 core: each product and each sum rounded, subnormals flushed.

    ``x`` is (M, K) and ``w`` (K, N), float32; so is the result, (M, N). A partial sum runs from +0 down the ``rows`` of
    a tile of K, then it is added to the accumulator, tiles ascending.
    """
    x, w = check_operands(as_float32(x), as_float32(w, "w"))
    x, w = flush(x), flush(w)

    def step(psum, a, b):
        with np.errstate(all="ignore"):
            return add_fp32(psum, round_fp32(np.float64(a) * np.float64(b)))
    return _tiled(x, w, rows, step)


def matmul_bf16(x: np.ndarray, w: np.ndarray, rows: int) -> np.ndarray:
    """The BF16 core: operands rounded to BF16, exact products added to an FP32 sum, one rounding an add.

    Order as :func:`matmul_fp32`.
    """
    x, w = check_operands(as_float32(x), as_float32(w, "w"))
    return _tiled(to_bf16(x), to_bf16(w), rows, add_product_fp32)


def matmul_fp16(x: np.ndarray, w: np.ndarray, rows: int) -> np.ndarray:
    """The FP16 core, as :func:`matmul_bf16`."""
    x, w = check_operands(as_float32(x), as_float32(w, "w"))
    return _tiled(to_fp16(x), to_fp16(w), rows, add_product_fp32)


def matmul_fma(x: np.ndarray, w: np.ndarray, rows: int) -> np.ndarray:
    """The IEEE core: each product is added with one rounding, subnormals kept.

    Order as :func:`matmul_fp32`; here every step is :mod:`golden.fp32`'s, on bit patterns.
    """
    x, w = check_operands(as_float32(x), as_float32(w, "w"))
    x, w = (np.ascontiguousarray(part).view(np.uint32) for part in (x, w))
    return _tiled(x, w, rows, lambda psum, a, b: fp32.fma(a, b, psum), fp32.add).view(np.float32)


def _tiled(x, w, rows, step, add=add_fp32):
    check_range("Rows", rows, 1, 256)
    acc = np.zeros((x.shape[0], w.shape[1]), x.dtype)
    for top in range(0, x.shape[1], rows):
        psum = np.zeros_like(acc)
        for k in range(top, min(top + rows, x.shape[1])):
            psum = step(psum, x[:, k, None], w[None, k])
        acc = add(acc, psum)
    return acc


def matmul_int(x: ArrayLike, w: ArrayLike) -> np.ndarray:
    """The integer core: exact int64 ``x @ w`` of integer arrays."""
    x, w = check_operands(integers(x, "x"), integers(w, "w"))
    return x @ w


def matmul_int8(x: np.ndarray, w: np.ndarray, rows: int) -> np.ndarray:
    """The INT8 core: operands rounded to integers from -127 to 127, exact sums of 32 bits, FP32 on the way out.

    ``rows`` is of no account: exact sums have no order. K is at most 131 072, so that 32 bits hold them.
    """
    x, w = check_operands(as_float32(x), as_float32(w, "w"))
    check_range("Rows", rows, 1, 256)
    a, b = (to_int8(part).astype(np.int64) for part in (x, w))
    return (a @ b).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """One kind of number with FP32 results whose elements are the top bits of an FP32, or FP16, or integers.

    Parameters
    ----------
    name : str
        Of the kind, as in :data:`hbfp.arithmetic.KINDS`.
    matmul : callable
        (x, w, rows of the array) to (M, N), all float32: the core's product, in its order.
    rounded : callable
        FP32 to the element nearest to it, as the FP32 number that it is.
    kind : type, optional
        numpy's of an element that is none of an FP32's top bits.
    """
    name: str
    matmul: Callable[[np.ndarray, np.ndarray, int], np.ndarray]
    rounded: Callable[[np.ndarray], np.ndarray]
    kind: type | None = None

    @property
    def _spare(self) -> np.uint32:
        """Low bits of an FP32 that an element lacks."""
        return np.uint32(32 - (KINDS[self.name].bits or 32))

    def patterns(self, x: np.ndarray) -> np.ndarray:
        """Elements as the core takes them, uint32, of FP32 numbers."""
        found = np.ascontiguousarray(self.rounded(as_float32(x)))
        if self.kind:
            return found.astype(self.kind).view(f"u{np.dtype(self.kind).itemsize}").astype(np.uint32)
        return found.view(np.uint32) >> self._spare

    def values(self, elements: np.ndarray) -> np.ndarray:
        """FP32 numbers of elements as the core takes them."""
        found = np.ascontiguousarray(patterns(elements, "Elements"))
        if self.kind:
            return found.astype(f"u{np.dtype(self.kind).itemsize}").view(self.kind).astype(np.float32)
        return (found.astype(np.uint32) << self._spare).view(np.float32)


#: Name -> baseline.
BASELINES = {each.name: each for each in (
    Baseline(name="fp32", matmul=matmul_fp32, rounded=np.asarray),
    Baseline(name="fma", matmul=matmul_fma, rounded=np.asarray),
    Baseline(name="bf16", matmul=matmul_bf16, rounded=to_bf16),
    Baseline(name="fp16", matmul=matmul_fp16, rounded=to_fp16, kind=np.float16),
    Baseline(name="int8", matmul=matmul_int8, rounded=to_int8, kind=np.int8),
)}
