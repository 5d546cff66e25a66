"""The weights' gradient of a convolution with elements that are converted once for many taps.

Blocks along the pixels are cut from the first output pixel on. Where they fit the rows of pixels, the elements that a
block meets with a tap are those that another block meets with a tap of another kernel row or depth: a line of
neighbouring pixels. So there is one copy of the input for each kernel column, in lines, and the product reads each tap
from its copy.
"""

import math
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
import torch

from ..fast import aligned, kernels, patches, products
from ..matmul import check_aligned
from . import unfold
from .formats import Formats
from .memory import array
from .unfold import Sides

#: Of the elements of all patches, the share from which on copies do not pay.
_SHARE = 0.75


class Plan(NamedTuple):
    """Where lines lie.

    Attributes
    ----------
    sides : tuple of int
        Those of planes, padding included, of which copies are made.
    starts : ndarray of int64
        Where in a plane each copy begins.
    counts, steps : ndarray of int64
        Elements of a copy along depth, rows and columns, and how far apart they are in a plane.
    length : int
        Elements of a row of a copy: whole blocks.
    rows, blocks : ndarray of int64
        Element (m, k) of block j is at ``rows[m] + blocks[j] + k`` in the copies behind each other; m in the order of K
        of a convolution.
    """
    sides: tuple[int, ...]
    starts: np.ndarray
    counts: np.ndarray
    steps: np.ndarray
    length: int
    rows: np.ndarray
    blocks: np.ndarray


@lru_cache(64)
def plan(n: int, c: int, out: Sides, size: Sides, stride: Sides, dilation: Sides, side: int) -> Plan | None:
    """Of ``n`` images of ``c`` channels with outputs ``out``, blocks of ``side`` pixels; None if it does not pay."""
    *_, high, wide = out
    lines = side // wide if wide < side else 1             # rows of pixels of a block
    if side % wide if lines > 1 else wide % side:
        return None
    if high % lines:
        return None
    # Of each tap, the number of a stride's remainder, and how many strides it is away; of the rows in lines, too.
    apart = [[divmod(tap * d, s) for tap in range(k)] for k, s, d in zip(size, stride, dilation, strict=True)]
    first = {tap: away % lines for tap, (away, _) in enumerate(apart[-2])}
    reach = [max(away for away, _ in each) for each in apart]
    reach[-2] = max(away - first[tap] for tap, (away, _) in enumerate(apart[-2]))
    counts = [*(o + r for o, r in zip(out[:-1], reach[:-1], strict=True)), wide]
    plane = math.prod(counts)
    copies: dict[tuple, int] = {}
    rows = []
    for taps in product(*map(range, size)):
        at = [apart[dim][tap] for dim, tap in enumerate(taps)]
        start = [rest for _, rest in at[:-1]] + [taps[-1] * dilation[-1]]
        start[-2] += first[taps[-2]] * stride[-2]
        number = copies.setdefault(tuple(start), len(copies))
        away = [strides for strides, _ in at[:-1]] + [0]
        away[-2] -= first[taps[-2]]
        rows.append(number * n * c * plane + _flat(away, counts))
    pixels = n * math.prod(out)
    if len(copies) * n * plane > _SHARE * math.prod(size) * pixels or pixels % side:
        return None
    order = np.array(rows).reshape(size).transpose(unfold.ORDER[len(size)]).ravel()
    image, *place = np.unravel_index(np.arange(0, pixels, side), (n, *out))
    sides = tuple(max(start[dim] for start in copies) + (counts[dim] - 1) * s + 1 for dim, s in enumerate(stride))
    starts = np.array([_flat(start, sides) for start in copies], np.int64)
    steps = [s * math.prod(sides[dim + 1:]) for dim, s in enumerate(stride)]
    flat = 3 - len(out)                                    # images are one deep
    return Plan(sides, starts, np.array([1] * flat + counts), np.array([0] * flat + steps), lines * wide,
                (order[:, None] + np.arange(c) * plane).ravel().astype(np.int64),
                (image * c * plane + _flat(place, counts)).astype(np.int64))


def _flat(place, counts):
    """The number of an element of which this is the place."""
    found = 0
    for each, count in zip(place, counts, strict=True):
        found = found * count + each
    return found


def weight_gradient(last: torch.Tensor, g: torch.Tensor, formats: Formats, size: Sides, stride: Sides,
                    dilation: Sides) -> np.ndarray | None:
    """(K, O) of padded channels-last ``last`` and ``g`` (N, OH, OW, O); None where another way has to do it."""
    fmt, g_fmt, c = formats.x, formats.g, last.shape[-1]
    whole = formats.accumulate == "aligned"
    if fmt.square or formats.stochastic or not (
            unfold.integers(last, (fmt, g_fmt), formats) if whole else
            fmt.sum_width(other=g_fmt) <= 25 and unfold.compiled(last, (fmt, g_fmt), formats, None)):
        return None
    found = plan(len(last), c, tuple(g.shape[1:-1]), size, stride, dilation, fmt.terms)
    if found is None:
        return None
    planes = patches.planes(array(last.movedim(-1, 1)), found.sides, (0,) * len(size))
    lines, a_span = patches.copies(planes, found.starts, found.counts, found.steps, found.length,
                                   None if whole else fmt)
    flat = array(g.reshape(-1, g.shape[-1]))
    if whole:
        return _aligned(lines, flat, found, formats)
    b, b_span = kernels.encoded(flat, g_fmt, axis=0)
    return products.multiply(lines, b, fmt, g_fmt, a_span, b_span, rows=found.rows, blocks=found.blocks,
                             sums=formats.accumulate)


def _aligned(lines, g, found, formats):
    """The product with sums in one accumulator; None if a number is Inf or NaN."""
    side = formats.x.terms
    check_aligned(formats.x, formats.g, len(found.blocks), formats.guard, formats.growth)
    a, b = aligned.Operand.encoded(lines, formats.x, -1), aligned.Operand.encoded(g, formats.g, -2)
    if a is None or b is None:
        return None
    places = aligned.Places(found.rows, found.blocks, 1, found.rows // side, found.blocks // side)
    return aligned.multiply(a, aligned.Panels.of(b, formats.x, formats.guard), places=places)
