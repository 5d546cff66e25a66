"""Matrix products in the hardware's order: docs/numerics.md, sections 3 to 5.

Three ways to the same bits. The plain one, in integers, is the definition. The quick ones take each
block's dot product in floating point where that is exact in any order, because every partial sum is
an integer that the float holds (24 or 53 bits): from BLAS, or from compiled kernels.
"""

import numpy as np
from numpy.typing import ArrayLike

from hbfp.design import ACCUMULATES
from hbfp.fields import check_choice, check_kind, check_range
from hbfp.format import HBFPFormat

from . import fp32, narrow
from .arrays import check_broadcast, integers
from .bfp import encode
from .blocks import CANONICAL_NAN, Blocks, as_float32, canonical, per_line, spread, used_blocks
from .fast import aligned, kernels, products
from .rounding import shift_half_up
from .to_fp32 import add_fp32, add_product_fp32, flush, round_fp32, to_bf16, to_fp32

#: Output rows that the quick path treats at once, so that its sums stay in the second-level cache.
_STRIP = 128
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
    x, w = _operands(as_float32(x), as_float32(w, "w"))
    w_fmt = fmt if w_fmt is None else w_fmt
    for each in (fmt, w_fmt):
        check_kind("Format", each, HBFPFormat)
    if accumulate == "fp32" and noise is None and w_noise is None and fmt.terms == w_fmt.terms and kernels.library():
        a, x_span = kernels.encoded(np.ascontiguousarray(x), fmt)
        b, w_span = kernels.encoded(np.ascontiguousarray(w), w_fmt, axis=0)
        return products.multiply(a, b, fmt, w_fmt, x_span, w_span)
    return matmul_blocks(encode(x, fmt, noise), encode(w, w_fmt, w_noise, axis=0), accumulate,
                         guard=guard, growth=growth)


def matmul_blocks(x: Blocks, w: Blocks, accumulate: str = "fp32", *, guard: int = 4, growth: int = 8,
                  plain: bool = False) -> np.ndarray:
    """:func:`matmul` of operands that are :class:`~golden.bfp.Blocks` already.

    ``w`` is encoded with ``axis=0``. ``plain`` takes the defining integer path.
    """
    check_choice("Accumulation", accumulate, ACCUMULATES)
    check_kind("x", x, Blocks)
    check_kind("w", w, Blocks)
    _operands(x.mantissa, w.mantissa)
    if x.fmt.terms != w.fmt.terms:
        raise ValueError(f"Blocks of x and w must have equal terms along K, not {x.fmt.terms} and {w.fmt.terms}")
    if not (x.fmt.square or x.axis == -1) or not (w.fmt.square or w.axis == -2):
        raise ValueError("Blocks of x must run along axis 1 and those of w along axis 0")
    y = np.zeros((x.mantissa.shape[0], w.mantissa.shape[1]), np.float32)
    if accumulate == "aligned":
        check_aligned(x.fmt, w.fmt, x.exponent.shape[-1], guard, growth)
        if plain or kernels.library() is None:
            _accumulate_aligned(x, w, y, guard)
        else:
            y = aligned.product(x, w, guard)
    elif accumulate in narrow.NARROW:
        sums, fmt = _sums(x, w), narrow.NARROW[accumulate]
        quick = not plain and x.fmt.subnormals == "flush" and _sum_width(x, w) <= 54
        y[:] = narrow.accumulate(sums, fmt) if quick else narrow.accumulate_plain(sums, fmt, x.fmt.subnormals)
    elif not plain and (wide := _exact_float(x, w)):
        _accumulate_floats(x, w, y, wide)
    else:
        _accumulate_plain(x, w, y)
    bad_rows = per_line(x, x.invalid, 0).any(1, keepdims=True)
    bad_columns = per_line(w, w.invalid, 1).any(0, keepdims=True)
    y[bad_rows | bad_columns] = CANONICAL_NAN.view(np.float32)
    return y


def _operands(x, w):
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0]:
        raise ValueError(f"Shapes of x and w must be (M, K) and (K, N), not {x.shape} and {w.shape}")
    return x, w


def _lines(x, w):
    """Exponents of x (M, blocks) and of w (blocks, N), the last bit's powers of two included."""
    return (per_line(x, x.exponent, 0).astype(np.int64) - x.fmt.magnitude,
            per_line(w, w.exponent, 1).astype(np.int64) - w.fmt.magnitude)


def _sums(x, w):
    """Per block along K, ascending: exact sums (M, N) and the powers of two of their last bits."""
    x_last, w_last = _lines(x, w)
    side, wide = x.fmt.terms, _dot_type(x, w)
    for j in range(x_last.shape[1]):
        part = slice(j * side, (j + 1) * side)
        # BLAS on integers that float64 holds exactly, sums included, is exact in any order.
        total = x.mantissa[:, part].astype(wide) @ w.mantissa[part].astype(wide)
        yield total.astype(np.int64), x_last[:, j, None] + w_last[None, j]


def _sum_width(x, w):
    """Bits of a block's sum, sign included."""
    return x.fmt.sum_width(x.fmt.terms, w.fmt)


def _dot_type(x, w):
    """The smallest float that holds every partial sum of a block, as an integer."""
    return np.float32 if _sum_width(x, w) <= 25 else np.float64


def _accumulate_plain(x, w, y):
    """Accumulation ``fp32``: the definition."""
    x_last, w_last = _lines(x, w)
    side, subnormals = x.fmt.terms, x.fmt.subnormals
    for j in range(x_last.shape[1]):
        part = slice(j * side, (j + 1) * side)
        total = mantissa_dot(x.mantissa[:, None, part], w.mantissa.T[None, :, part])
        y[:] = add_fp32(y, to_fp32(total, x_last[:, j, None] + w_last[None, j], subnormals), subnormals)


def _exact_float(x, w):
    """The smallest float type in which BLAS gives every block sum exactly, as a scaled number; or None.

    Its significand must hold the integers, and no operand or sum may leave its normal range.
    """
    width, spans = _sum_width(x, w), []
    for blocks in (x, w):
        exponent = blocks.exponent[used_blocks(blocks)].astype(np.int64)
        spans.append((exponent.min(initial=0) - blocks.fmt.magnitude, exponent.max(initial=0)))
    low, high = (sum(span) for span in zip(*spans, strict=True))
    reach = high + max(x.fmt.terms.bit_length(), 1)
    least, most = min(low, *(span[0] for span in spans)), max(reach, *(span[1] for span in spans))
    if width <= 25 and least >= -126 and most <= 127:
        return np.float32
    if width <= 54 and least >= -1022 and most <= 1023:
        return np.float64
    return None


def _accumulate_floats(x, w, y, wide):
    """Accumulation ``fp32`` with BLAS in the type that :func:`_exact_float` allows."""
    a, b = (np.ldexp(blocks.mantissa.astype(wide), spread(blocks.exponent, blocks.mantissa.shape, blocks.fmt,
                                                          blocks.axis) - blocks.fmt.magnitude) for blocks in (x, w))
    side, subnormals = x.fmt.terms, x.fmt.subnormals
    partial = np.empty((min(_STRIP, len(y)), y.shape[1]), wide)
    with np.errstate(over="ignore", invalid="ignore"):
        for top in range(0, len(y), _STRIP):
            total = y[top:top + _STRIP]
            for left in range(0, a.shape[1], side):
                product = np.matmul(a[top:top + _STRIP, left:left + side], b[left:left + side],
                                    out=partial[:len(total)])
                if wide is np.float32:
                    np.add(total, product, out=total)
                else:
                    total[:] = add_fp32(total, round_fp32(product, subnormals), subnormals)
            total[:] = canonical(total)


def check_widths(guard: int, growth: int) -> None:
    """``ValueError`` if a part of an ``aligned`` accumulator is too wide in any format."""
    check_range("Guard width", guard, 0, 16, " bits")
    check_range("Growth width", growth, 0, 16, " bits")


def check_aligned(x_fmt: HBFPFormat, w_fmt: HBFPFormat, blocks: int, guard: int, growth: int) -> None:
    """``ValueError`` unless the accumulator is one that the golden model has, and wide enough for ``blocks`` along K.
    """
    check_widths(guard, growth)
    width = x_fmt.sum_width(x_fmt.terms, w_fmt) + guard + growth
    if width > _WIDEST:
        raise ValueError(f"Accumulator must be at most {_WIDEST} bits wide in the golden model, not {width}")
    if blocks > 2 ** growth:
        raise ValueError(f"Blocks along K must be at most 2^growth = {2 ** growth} for accumulation 'aligned', "
                         f"not {blocks}")


def _accumulate_aligned(x, w, y, guard):
    """Accumulation ``aligned``: section 5."""
    acc = last = None
    for total, step in _sums(x, w):
        total = total << guard
        if acc is None:
            acc, last = total, step
            continue
        ahead = step - last
        acc = shift_half_up(acc, np.maximum(ahead, 0)) + shift_half_up(total, np.maximum(-ahead, 0))
        last = np.maximum(last, step)
    if acc is not None:
        y[:] = to_fp32(acc, last - guard, x.fmt.subnormals)


# --- Baselines of the same dataflow -------------------------------------------------------------


def matmul_fp32(x: np.ndarray, w: np.ndarray, rows: int) -> np.ndarray:
    """The FP32 core: each product and each sum rounded, subnormals flushed.

    ``psum`` runs from +0 down the ``rows`` of a K tile, then the tile's sum is added to the
    accumulator, tiles ascending.
    """
    x, w = _operands(as_float32(x), as_float32(w, "w"))
    x, w = flush(x), flush(w)

    def step(psum, a, b):
        with np.errstate(all="ignore"):
            return add_fp32(psum, round_fp32(np.float64(a) * np.float64(b)))
    return _tiled(x, w, rows, step)


def matmul_bf16(x: np.ndarray, w: np.ndarray, rows: int) -> np.ndarray:
    """The BF16 core: operands rounded to BF16, exact products added to an FP32 sum, one rounding an add.

    Order as :func:`matmul_fp32`.
    """
    x, w = _operands(as_float32(x), as_float32(w, "w"))
    return _tiled(to_bf16(x), to_bf16(w), rows, add_product_fp32)


def matmul_fma(x: np.ndarray, w: np.ndarray, rows: int) -> np.ndarray:
    """The IEEE core: each product is added with one rounding, subnormals kept.

    Order as :func:`matmul_fp32`; here every step is :mod:`golden.fp32`'s, on bit patterns.
    """
    x, w = _operands(as_float32(x), as_float32(w, "w"))
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
    x, w = _operands(integers(x, "x"), integers(w, "w"))
    return x @ w
