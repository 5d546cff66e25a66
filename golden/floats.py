"""Products of other numbers in the order of an array, quickly; :mod:`golden.core.baselines` defines them."""

from collections.abc import Callable

import numpy as np

from .fast.plain import STEPS
from .matmul import check_operands
from .number.blocks import as_float32, canonical
from .number.to_fp32 import to_bf16, to_fp16, to_int8

#: Arithmetic -> float32 to the operand nearest to it, as the FP32 number that it is.
ROUNDED: dict[str, Callable[[np.ndarray], np.ndarray]] = {"fp32": np.asarray, "bf16": to_bf16, "fp16": to_fp16,
                                                           "int8": to_int8}


def matmul(name: str, x: np.ndarray, w: np.ndarray, rows: int) -> np.ndarray:
    """``x @ w`` as a core of that arithmetic gives it.

    Parameters
    ----------
    name : str
        Of :data:`ROUNDED`.
    x, w : ndarray of float32
        (M, K) and (K, N).
    rows : int
        Of the array: a partial sum runs down so many terms.

    Returns
    -------
    ndarray of float32, (M, N)
    """
    x, w = check_operands(as_float32(x), as_float32(w, "w"))
    x, w = (np.ascontiguousarray(ROUNDED[name](part)) for part in (x, w))
    result = np.empty((x.shape[0], w.shape[1]), np.float32)
    STEPS[name](x, w, rows, result)
    return canonical(result)
