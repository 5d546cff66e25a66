"""Matrix products in the hardware's order: docs/numerics.md, sections 3 to 5.

Each has a definition in integers, and quicker ways to the same bits: :mod:`golden.ways`.
"""

import numpy as np
from numpy.typing import ArrayLike

from hbfp.checks import check_choice, check_kind, check_range
from hbfp.design import ACCUMULATES
from hbfp.format import HBFPFormat

from .bfp import encode
from .fast import kernels, products
from .number.arrays import check_broadcast, integers
from .number.blocks import CANONICAL_NAN, Blocks, as_float32, per_line
from .ways import DEFINITIONS, QUICK

#: Bits of the widest aligned accumulator that int64 models.
_WIDEST = 62


def mantissa_dot(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Exact integer dot product along the last axis: section 3. Nothing rounds or saturates."""
    a, b = integers(a, "a"), integers(b, "b")
    check_broadcast("a and b", a, b)
    return (a * b).sum(-1)


def matmul(x: np.ndarray, w: np.ndarray, fmt: HBFPFormat, accumulate: str = "fp32", *, w_fmt: HBFPFormat | None = None,
           guard: int = 4, growth: int = 8, noise: np.ndarray | None = None,
           w_noise: np.ndarray | None = None) -> np.ndarray:
    """``x @ w`` in HBFP, bit for bit what the core computes.

    Parameters
    ----------
    x, w : ndarray of float32
        (M, K) and (K, N). Both are cut into blocks along K (tiles for ``(t, t)``).
    fmt : HBFPFormat
        Format of ``x``, and of ``w`` unless ``w_fmt`` is given.
    accumulate : str
        ``fp32``, ``aligned``, ``fp24`` or ``bf16``: section 5.
    w_fmt : HBFPFormat, optional
        Format of ``w``; its blocks must have as many terms along K.
    guard, growth : int
        ``aligned`` only: fraction bits below a block sum, and bits for 2^growth blocks along K.
    noise, w_noise : ndarray of int, optional
        For ``stochastic``: shapes of ``x`` and ``w``.

    Returns
    -------
    ndarray of float32
        (M, N).

    Raises
    ------
    TypeError
        If ``x`` or ``w`` is not float32.
    ValueError
        If shapes, formats, options or the number of blocks do not fit.
    """
    check_choice("Accumulation", accumulate, ACCUMULATES)
    x, w = check_operands(as_float32(x), as_float32(w, "w"))
    w_fmt = fmt if w_fmt is None else w_fmt
    for each in (fmt, w_fmt):
        check_kind("Format", each, HBFPFormat)
    if (noise is None and w_noise is None and fmt.terms == w_fmt.terms and kernels.adds(accumulate, (fmt, w_fmt))
            and kernels.library()):
        return products.converted(x, w, fmt, w_fmt, accumulate)
    if accumulate == "aligned":
        check_widths(guard, growth)
    return matmul_blocks(encode(x, fmt, noise), encode(w, w_fmt, w_noise, axis=0), accumulate,
                         guard=guard, growth=growth)


def matmul_blocks(x: Blocks, w: Blocks, accumulate: str = "fp32", *, guard: int = 4, growth: int | None = 8,
                  plain: bool = False) -> np.ndarray:
    """:func:`matmul` of operands that are :class:`~golden.bfp.Blocks` already.

    ``w`` is encoded with ``axis=0``. ``growth`` None is as much as the blocks along K need. ``plain`` takes the
    defining integer path.
    """
    check_choice("Accumulation", accumulate, ACCUMULATES)
    check_kind("x", x, Blocks)
    check_kind("w", w, Blocks)
    check_operands(x.mantissa, w.mantissa)
    if x.fmt.terms != w.fmt.terms:
        raise ValueError(f"Blocks of x and w must have equal terms along K, not {x.fmt.terms} and {w.fmt.terms}")
    if not (x.fmt.square or x.axis == -1) or not (w.fmt.square or w.axis == -2):
        raise ValueError("Blocks of x must run along axis 1 and those of w along axis 0")
    if accumulate == "aligned":
        check_aligned(x.fmt, w.fmt, x.exponent.shape[-1], guard, growth)
    quick = (way.gives for way in QUICK[accumulate] if not plain and way.serves(x, w))
    y = np.empty((x.mantissa.shape[0], w.mantissa.shape[1]), np.float32)
    y[:] = next(quick, DEFINITIONS[accumulate])(x, w, guard)
    bad_rows = per_line(x, x.invalid, 0).any(1, keepdims=True)
    bad_columns = per_line(w, w.invalid, 1).any(0, keepdims=True)
    y[bad_rows | bad_columns] = CANONICAL_NAN.view(np.float32)
    return y


def check_operands(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and w; ``ValueError`` unless they are (M, K) and (K, N)."""
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0]:
        raise ValueError(f"Shapes of x and w must be (M, K) and (K, N), not {x.shape} and {w.shape}")
    return x, w


def check_widths(guard: int, growth: int) -> None:
    """``ValueError`` if a part of an ``aligned`` accumulator is too wide in any format."""
    check_range("Guard width", guard, 0, 16, " bits")
    check_range("Growth width", growth, 0, 16, " bits")


def check_aligned(x_fmt: HBFPFormat, w_fmt: HBFPFormat, blocks: int, guard: int, growth: int | None) -> None:
    """``ValueError`` unless the accumulator is one that the golden model has, and wide enough for ``blocks`` along K.

    It has as many bits for growth as they need where ``growth`` is None; no result depends on more.
    """
    growth = max(blocks - 1, 0).bit_length() if growth is None else growth
    check_widths(guard, growth)
    width = x_fmt.sum_width(other=w_fmt) + guard + growth
    if width > _WIDEST:
        raise ValueError(f"Accumulator must be at most {_WIDEST} bits wide in the golden model, not {width}")
    if blocks > 2 ** growth:
        raise ValueError(f"Blocks along K must be at most 2^growth = {2 ** growth} for accumulation 'aligned', "
                         f"not {blocks}")
