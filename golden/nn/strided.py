"""The input's gradient of a convolution with a stride: operands are converted once for all phases.

Where blocks ``(1, B)`` divide the output channels an element of g lies in the same block in every patch of every phase,
and one of the weights in the same block of its tap.
"""

import math
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch

from ..fast import aligned, kernels, products, scratch
from ..matmul import check_aligned
from . import unfold
from .formats import Formats
from .memory import array
from .phases import phases
from .unfold import Sides


class Part(NamedTuple):
    """One phase.

    Attributes
    ----------
    places : tuple of slice
        Its pixels.
    counts : tuple of int
        How many of them there are along each dimension.
    taps : ndarray of int64
        Its taps' numbers among those of the kernel, both in the order of K.
    rows, blocks : ndarray of int64
        Where patches and their blocks start in g with the zeros around it.
    """
    places: Any
    counts: Any
    taps: np.ndarray
    rows: np.ndarray
    blocks: np.ndarray


class Plan(NamedTuple):
    """All phases that taps meet, and whether these are all; ``padding`` around g serves the patches of each."""
    padding: list[int]
    parts: list[Part]
    all: bool


def serves(g: torch.Tensor, stride: Sides, formats: Formats) -> bool:
    """Whether there are phases, and the formats are those of the kernels, without noise; ``g`` (N, O, OH, OW)."""
    pair = formats.g, formats.w
    return (max(stride) > 1 and g.shape[1] % formats.g.terms == 0
            and not (formats.stochastic or formats.g.square or formats.w.square)
            and (unfold.compiled(g, pair, formats, None) or unfold.integers(g, pair, formats)))


def input_gradient(g: torch.Tensor, w: torch.Tensor, shape: tuple[int, ...], stride: Sides, padding: Sides,
                   dilation: Sides, formats: Formats) -> torch.Tensor | None:
    """(N, H, W, C) of ``g`` (N, O, OH, OW) and ``w`` (O, C, kh, kw); ``shape`` is that of the input (N, C, H, W).

    None where sums go to one accumulator and a number is Inf or NaN.
    """
    (n, c, *sides), out = shape, g.shape[1]
    found = plan(tuple(g.shape), tuple(w.shape[2:]), tuple(sides), stride, padding, dilation, formats.g.terms)
    last = unfold.channels_last(g, found.padding)
    matrix = unfold.weight_matrix(w.detach().transpose(0, 1))                   # (taps * O, C)
    multiply = _products(array(last.view(-1, out)), array(matrix), found.parts, formats)
    if multiply is None:
        return None
    y = scratch.empty((n, *sides, c))
    if not found.all:
        y[...] = 0
    for part in found.parts:
        y[:, *part.places] = multiply(part).reshape(n, *part.counts, c)
    return torch.from_numpy(y)


def _products(last, matrix, parts, formats):
    """What multiplies a part's patches of ``last`` with its taps of ``matrix``, both converted."""
    fmt, w_fmt, out = formats.g, formats.w, last.shape[1]
    if formats.accumulate != "aligned":
        (a, a_span), (b, b_span) = kernels.encoded(last, fmt), kernels.encoded(matrix, w_fmt, axis=0)
        return lambda part: products.multiply(a, _of_taps(b, out, part), fmt, w_fmt, a_span, b_span, rows=part.rows,
                                              blocks=part.blocks, sums=formats.accumulate)
    for part in parts:
        check_aligned(fmt, w_fmt, len(part.blocks), formats.guard, formats.growth)
    left, right = aligned.Operand.encoded(last, fmt, -1), aligned.Operand.encoded(matrix, w_fmt, -2)
    if left is None or right is None:
        return None

    def multiply(part):
        some = aligned.Operand(_of_taps(right.mantissa, out, part), _of_taps(right.last, out // fmt.terms, part), w_fmt)
        places = aligned.Places(part.rows, part.blocks, 1, part.rows // fmt.terms, part.blocks // fmt.terms)
        return aligned.multiply(left, aligned.Panels.of(some, fmt, formats.guard), places=places)
    return multiply


def _of_taps(matrix, rows, part):
    """The rows of a part's taps, of a matrix with so many for each tap."""
    return matrix.reshape(-1, rows, matrix.shape[1])[part.taps].reshape(-1, matrix.shape[1])


@lru_cache(64)
def plan(g_shape: tuple[int, ...], size: Sides, sides: Sides, stride: Sides, padding: Sides, dilation: Sides,
         terms: int) -> Plan:
    """Of gradients (N, O, OH, OW) of an input with ``sides``, in blocks of ``terms`` channels."""
    n, c, *own = g_shape
    found = phases(size, sides, stride, padding, dilation)
    some = [phase for phase in found if not phase.empty]
    lead, behind = [0] * len(own), [0] * len(own)
    for phase in some:
        for dim, (corner, side) in enumerate(zip(phase.corner, phase.sides, strict=True)):
            lead[dim], behind[dim] = max(lead[dim], corner), max(behind[dim], side - corner - own[dim])
    whole = [sum(each) for each in zip(lead, own, behind, strict=True)]
    steps = [math.prod(whole[dim + 1:]) * c for dim in range(len(own))]
    order = unfold.ORDER[len(own)]
    numbers = np.arange(math.prod(size)).reshape([size[dim] for dim in order])
    parts = []
    for phase in some:
        counts = tuple(line.count for line in phase.lines)
        first = sum((front - corner) * step for front, corner, step in zip(lead, phase.corner, steps, strict=True))
        taps = unfold.starts([phase.size[dim] for dim in order], [phase.step[dim] * steps[dim] for dim in order])
        parts.append(Part(
            phase.places, counts, np.array([numbers[tap] for tap in product(*(phase.lines[i].taps for i in order))]),
            first + unfold.starts((n, *counts), (math.prod(whole) * c, *steps)),
            (taps[:, None] + np.arange(0, c, terms, dtype=np.int64)).ravel()))
    around = [each for pair in reversed(list(zip(lead, behind, strict=True))) for each in pair]
    return Plan(around, parts, len(some) == len(found))
