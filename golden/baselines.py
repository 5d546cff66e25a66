"""Float baselines by the name that a design gives their kind of number: products, and elements as bit patterns."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hbfp.arithmetic import KINDS

from .arrays import patterns
from .blocks import as_float32
from .matmul import matmul_bf16, matmul_fma, matmul_fp32
from .to_fp32 import to_bf16


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """One kind of float whose elements are the top bits of an FP32.

    Parameters
    ----------
    name : str
        Of the kind, as in :data:`hbfp.arithmetic.KINDS`.
    matmul : callable
        (x, w, rows of the array) to (M, N), all float32: the core's product, in its order.
    rounded : callable
        FP32 to the element nearest to it, as the FP32 number that it is.
    """
    name: str
    matmul: Callable[[np.ndarray, np.ndarray, int], np.ndarray]
    rounded: Callable[[np.ndarray], np.ndarray]

    @property
    def _spare(self) -> np.uint32:
        """Low bits of an FP32 that an element lacks."""
        return np.uint32(32 - (KINDS[self.name].bits or 32))

    def patterns(self, x: np.ndarray) -> np.ndarray:
        """Elements as the core takes them, uint32, of FP32 numbers."""
        return np.ascontiguousarray(self.rounded(as_float32(x))).view(np.uint32) >> self._spare

    def values(self, elements: np.ndarray) -> np.ndarray:
        """FP32 numbers of elements as the core takes them."""
        return (np.ascontiguousarray(patterns(elements, "Elements")).astype(np.uint32) << self._spare).view(np.float32)


#: Name -> baseline.
BASELINES = {each.name: each for each in (
    Baseline(name="fp32", matmul=matmul_fp32, rounded=np.asarray),
    Baseline(name="fma", matmul=matmul_fma, rounded=np.asarray),
    Baseline(name="bf16", matmul=matmul_bf16, rounded=to_bf16),
)}
