"""What stands in X and W: blocks of mantissas, or numbers that share no exponents, as integers of their bits."""

import numpy as np

from hbfp.design import Design
from hbfp.format import HBFPFormat

from .. import bfp
from ..core.baselines import BASELINES
from ..floats import matmul
from ..matmul import matmul_blocks
from ..number.blocks import Blocks


def encode(design: Design, x: np.ndarray, fmt: HBFPFormat, noise: np.ndarray | None = None, axis: int = -1) -> Blocks:
    """A matrix of float32 as the converter gives it.

    Parameters
    ----------
    design : Design
    x : ndarray of float32
        Its sides are whole words.
    fmt : HBFPFormat
        Of blocks; where there are none its rows say what stands together.
    noise : ndarray of int32, optional
        For stochastic rounding.
    axis : int
        Along which blocks run.
    """
    if design.blocked:
        return bfp.encode(x, fmt, noise, axis=axis)
    bits = BASELINES[design.arithmetic].patterns(x).astype(np.uint32).view(np.int32)
    shape = list(x.shape)
    shape[axis] = -(-shape[axis] // fmt.terms)
    return Blocks(bits, np.zeros(shape, np.int32), np.zeros(shape, bool), fmt, axis)


def product(design: Design, x: Blocks, w: Blocks) -> np.ndarray:
    """FP32 sums (M, N) of blocks (M, K) and (K, N), before the side unit."""
    if design.blocked:
        return matmul_blocks(x, w, design.accumulate, guard=design.guard, growth=design.growth)
    a, b = (BASELINES[design.arithmetic].values(part.mantissa.view(np.uint32)) for part in (x, w))
    return matmul(design.arithmetic, a, b, design.rows)
