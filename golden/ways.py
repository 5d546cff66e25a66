"""Ways to a product of blocks: docs/numerics.md, section 5, and what gives its bits more quickly.

The quick ways take each block's dot product in floating point where that is exact in any order, because every partial
sum is an integer that the float holds (24 or 53 bits): from BLAS, or from compiled kernels.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from . import narrow
from .fast import aligned, kernels
from .number.blocks import Blocks, canonical, per_line, spread, used_blocks
from .number.rounding import shift_half_up
from .number.to_fp32 import add_fp32, round_fp32, to_fp32

#: Output rows that the quick path treats at once, so that its sums stay in the second-level cache.
_STRIP = 128


#: What gives a product: (x, w, guard) to (M, N) float32, which may be anything where a block is invalid.
Product = Callable[[Blocks, Blocks, int], np.ndarray]


class Way(NamedTuple):
    """A quick way to a product.

    Attributes
    ----------
    serves : callable
        Whether it gives the definition's bits of blocks x and w.
    gives : callable
        The product.
    """
    serves: Callable[[Blocks, Blocks], bool]
    gives: Product


class _Float(NamedTuple):
    """A type in which BLAS adds: bits of the integers that it holds, sign included, and powers of two of its range."""
    type: type[np.floating]
    bits: int
    least: int
    most: int


_SINGLE, _DOUBLE = _Float(np.float32, 25, -126, 127), _Float(np.float64, 54, -1022, 1023)


def _lines(x, w):
    """Exponents of x (M, blocks) and of w (blocks, N), the last bit's powers of two included."""
    return (per_line(x, x.exponent, 0).astype(np.int64) - x.fmt.magnitude,
            per_line(w, w.exponent, 1).astype(np.int64) - w.fmt.magnitude)


def _sums(x, w, wide=None):
    """Per block along K, ascending: exact sums (M, N) and the powers of two of their last bits.

    BLAS on integers that a float holds exactly, sums included, is exact in any order; ``wide`` is the type to add in.
    """
    x_last, w_last = _lines(x, w)
    side, wide = x.fmt.terms, wide or (_SINGLE if x.fmt.sum_width(other=w.fmt) <= _SINGLE.bits else _DOUBLE).type
    for j in range(x_last.shape[1]):
        part = slice(j * side, (j + 1) * side)
        total = x.mantissa[:, part].astype(wide) @ w.mantissa[part].astype(wide)
        yield total.astype(np.int64), x_last[:, j, None] + w_last[None, j]


# --- FP32 ---------------------------------------------------------------------------------------


def _fp32(x, w, guard):
    """The definition."""
    y = np.zeros((x.mantissa.shape[0], w.mantissa.shape[1]), np.float32)
    for total, last in _sums(x, w, np.int64):
        y = add_fp32(y, to_fp32(total, last, x.fmt.subnormals), x.fmt.subnormals)
    return y


def _exact(wide, x, w):
    """Whether BLAS gives every block sum exactly, as a scaled number: no operand and no sum may leave the range."""
    spans = []
    for blocks in (x, w):
        exponent = blocks.exponent[used_blocks(blocks)].astype(np.int64)
        spans.append((exponent.min(initial=0) - blocks.fmt.magnitude, exponent.max(initial=0)))
    low, high = (sum(span) for span in zip(*spans, strict=True))
    reach = high + max(x.fmt.terms.bit_length(), 1)
    return (x.fmt.sum_width(other=w.fmt) <= wide.bits
            and min(low, *(span[0] for span in spans)) >= wide.least
            and max(reach, *(span[1] for span in spans)) <= wide.most)


def _floats(wide, x, w, guard):
    """With BLAS in a type that is :func:`_exact`."""
    a, b = (np.ldexp(blocks.mantissa.astype(wide.type), spread(blocks.exponent, blocks.mantissa.shape, blocks.fmt,
                                                               blocks.axis) - blocks.fmt.magnitude)
            for blocks in (x, w))
    side, subnormals = x.fmt.terms, x.fmt.subnormals
    y = np.zeros((len(a), b.shape[1]), np.float32)
    partial = np.empty((min(_STRIP, len(y)), y.shape[1]), wide.type)
    with np.errstate(over="ignore", invalid="ignore"):
        for top in range(0, len(y), _STRIP):
            total = y[top:top + _STRIP]
            for left in range(0, a.shape[1], side):
                product = np.matmul(a[top:top + _STRIP, left:left + side], b[left:left + side],
                                    out=partial[:len(total)])
                if wide is _SINGLE:
                    np.add(total, product, out=total)
                else:
                    total[:] = add_fp32(total, round_fp32(product, subnormals), subnormals)
            total[:] = canonical(total)
    return y


# --- Aligned, and narrower floats ---------------------------------------------------------------


def _aligned(x, w, guard):
    """The definition."""
    acc, last = np.zeros((x.mantissa.shape[0], w.mantissa.shape[1]), np.int64), None
    for total, step in _sums(x, w):
        total = total << guard
        ahead = 0 if last is None else step - last
        acc = shift_half_up(acc, np.maximum(ahead, 0)) + shift_half_up(total, np.maximum(-ahead, 0))
        last = step if last is None else np.maximum(last, step)
    return to_fp32(acc, 0 if last is None else last - guard, x.fmt.subnormals)


def _narrow(fmt, x, w, guard):
    """The definition of sums in a narrower float."""
    return narrow.accumulate_plain(_sums(x, w), fmt, x.fmt.subnormals)


def _narrow_floats(fmt, x, w, guard):
    """The same in float64, which holds the integers."""
    return narrow.accumulate(_sums(x, w), fmt)


#: Accumulation -> the definition of its products.
DEFINITIONS: dict[str, Product] = {
    "fp32": _fp32, "aligned": _aligned, **{name: partial(_narrow, fmt) for name, fmt in narrow.NARROW.items()},
}
#: Accumulation -> quicker ways, the quickest first.
QUICK: dict[str, tuple[Way, ...]] = {
    "fp32": tuple(Way(partial(_exact, wide), partial(_floats, wide)) for wide in (_SINGLE, _DOUBLE)),
    "aligned": (Way(lambda x, w: kernels.library() is not None, aligned.product),),
    **{name: (Way(lambda x, w: x.fmt.subnormals == "flush" and x.fmt.sum_width(other=w.fmt) <= _DOUBLE.bits,
                  partial(_narrow_floats, fmt)),) for name, fmt in narrow.NARROW.items()},
}
