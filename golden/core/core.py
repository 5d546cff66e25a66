"""The core of a design on whole tensors, untimed: encoding, product, side unit."""

from typing import Any

import numpy as np

from hbfp.checks import check_kind
from hbfp.design import Design

from .. import bfp, fp32
from ..matmul import matmul_blocks
from ..noise import noise
from ..number.arrays import patterns
from ..number.blocks import as_float32
from .baselines import BASELINES, matmul_int


def encode(design: Design, x: np.ndarray, axis: int = -1, *, seed: int = 1, wide: bool = False) -> bfp.Blocks:
    """``x`` (float32) as the core's converter gives it, from reset: :class:`~golden.bfp.Blocks`.

    Parameters
    ----------
    design : hbfp.design.Design
        Format and lanes of the converter.
    axis : int
        As of :func:`golden.bfp.encode`.
    seed : int
        Of the random stream, for ``stochastic``.
    wide : bool
        Whether mantissas have the design's ``wide`` bits.
    """
    check_kind("Design", design, Design)
    fmt = design.widest if wide else design.format
    random = None
    if fmt.rounding == "stochastic":
        random = noise(x.shape, fmt, design.encode_lanes, seed=seed, axis=axis)
    return bfp.encode(x, fmt, random, axis=axis)


def side(y: np.ndarray, scale: np.ndarray | None = None, bias: np.ndarray | None = None,
         relu: bool = False) -> np.ndarray:
    """The side unit on bit patterns: times ``scale``, plus ``bias``, ReLU; docs/numerics.md, section 7.

    Factor and bias flush subnormals with their sign. ReLU is the maximum with +0: NaN stays, -0 becomes +0, and a
    positive subnormal, which only ``fma`` sums can be, stays.

    Parameters
    ----------
    y : ndarray of uint32
        (M, N).
    scale, bias : ndarray of uint32, (N,), optional
        One for each column.

    Returns
    -------
    ndarray of uint32
        (M, N).
    """
    if scale is not None:
        y = fp32.mul(y, scale, subnormals="flush")
    if bias is not None:
        y = fp32.add(y, bias, subnormals="flush")
    if relu:
        y = fp32.max(y, np.uint32(0))
    return patterns(y, "y").astype(np.uint32, copy=False)


def matmul(design: Design, x: Any, w: Any, *, scale: np.ndarray | None = None, bias: np.ndarray | None = None,
           relu: bool = False) -> np.ndarray:
    """``x @ w`` and the side unit's steps, in the core's order.

    Parameters
    ----------
    design : hbfp.design.Design
        The core.
    x, w : Blocks, or ndarray
        (M, K) and (K, N): blocks (or float32, encoded here) for ``hbfp``, float32 for floats,
        integers for ``int``.
    scale, bias : ndarray of float32, (N,), optional
        One for each column; none for ``int``.
    relu : bool
        Clamp below at 0; not for ``int``.

    Returns
    -------
    ndarray of float32, (M, N); int64 for ``int``
    """
    check_kind("Design", design, Design)
    if not design.number.float_results:
        return matmul_int(x, w)
    if design.blocked:
        x, w = (part if isinstance(part, bfp.Blocks) else encode(design, part, axis)
                for part, axis in ((x, -1), (w, -2)))
        y = matmul_blocks(x, w, design.accumulate, guard=design.guard, growth=design.growth)
    else:
        y = BASELINES[design.arithmetic].matmul(x, w, design.rows)
    factors, addends = (None if vector is None else np.ascontiguousarray(as_float32(vector, what)).view(np.uint32)
                        for vector, what in ((scale, "scale"), (bias, "bias")))
    return side(y.view(np.uint32), factors, addends, relu).view(np.float32)
