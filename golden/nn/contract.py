"""Products of torch's many forms brought to one: stacked matrices (S, M, K) times (S, K, N).

Of two operands the one that is a parameter has the role of the weights; if neither or both are, the second.
"""

import string
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..noise import Stream
from . import functional
from .formats import Formats

#: A product of stacked matrices (..., M, K) and (..., K, N).
Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def is_weight(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether ``a``, and not ``b``, has the role of the weights."""
    return isinstance(a, torch.nn.Parameter) and not isinstance(b, torch.nn.Parameter)


def multiply(a: torch.Tensor, b: torch.Tensor, formats: Formats, stream: Stream | None,
             first: bool = False) -> torch.Tensor:
    """``a @ b`` of (..., M, K) and (..., K, N), leading dimensions broadcast; ``first``: ``a`` is the weights.

    With K = 1 nothing is summed or converted: each result is one FP32 product, as in ``a * b``.
    """
    if a.shape[-1] == 1 == b.shape[-2]:
        return a * b
    if first:
        return multiply(b.mT, a.mT, formats, stream).mT
    if b.dim() == 2:
        return functional.matmul(a, b, formats, stream=stream)
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return functional.matmul(a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:]), formats, stream=stream)


def matmul(a: torch.Tensor, b: torch.Tensor, formats: Formats, stream: Stream | None) -> torch.Tensor:
    """As ``torch.matmul``: vectors, matrices, stacks of matrices."""
    first = is_weight(a, b)
    if not a.dim() or not b.dim() or a.shape[-1] != b.shape[-2 if b.dim() > 1 else 0]:
        raise ValueError(f"Shapes of a and b must be (..., M, K) and (..., K, N), not {tuple(a.shape)} and "
                         f"{tuple(b.shape)}")
    left, right = a if a.dim() > 1 else a[None], b if b.dim() > 1 else b[:, None]
    y = multiply(left, right, formats, stream, first)
    y = y if b.dim() > 1 else y.squeeze(-1)
    return y if a.dim() > 1 else y.squeeze(-2 if b.dim() > 1 else -1)


def einsum(equation: str, operands: Sequence[torch.Tensor], formats: Formats, stream: Stream | None) -> torch.Tensor:
    """As ``torch.einsum``; more than two operands are contracted from left to right."""
    terms, output = _parse(equation, operands)
    return contract(operands, terms, output, formats, stream)


def tensordot(a: torch.Tensor, b: torch.Tensor, dims: Any, formats: Formats, stream: Stream | None) -> torch.Tensor:
    """As ``torch.tensordot``."""
    if isinstance(dims, torch.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        dims = range(a.dim() - dims, a.dim()), range(dims)
    over = [([d] if isinstance(d, int) else list(d)) for d in dims]
    left, right = list(range(a.dim())), list(range(a.dim(), a.dim() + b.dim()))
    for i, j in zip(*over, strict=True):
        right[j] = left[i]
    summed = {left[i] for i in over[0]}
    return contract((a, b), (left, right), [label for label in left + right if label not in summed], formats, stream)


def contract(operands: Sequence[torch.Tensor], terms: Sequence[Sequence[int]], output: Sequence[int],
             formats: Formats, stream: Stream | None) -> torch.Tensor:
    """Sum of products of ``operands`` with dimensions labelled ``terms``; those of the result are ``output``."""
    value, labels = operands[0], list(terms[0])
    weight = value
    for i, (operand, other) in enumerate(zip(operands[1:], terms[1:], strict=True), 1):
        keep = {*output, *(label for term in terms[i + 1:] for label in term)}
        value, labels = _pair(value, labels, operand, list(other), keep, formats, stream, is_weight(weight, operand))
        weight = value
    return _turned(value, labels, list(output))


def _turned(value, labels, output):
    """One operand with its dimensions in another order, and those that are left out added up: no product."""
    if len(set(labels)) == len(labels) and len(output) == len(labels):
        return value.permute([labels.index(label) for label in output])
    return torch.einsum(value, labels, output)


def _pair(a, a_labels, b, b_labels, keep, formats, stream, first):
    """Two operands contracted, and the labels of what comes out."""
    shared = [label for label in dict.fromkeys(a_labels) if label in b_labels]
    batch, summed = [s for s in shared if s in keep], [s for s in shared if s not in keep]
    left = [s for s in dict.fromkeys(a_labels) if s in keep and s not in shared]
    right = [s for s in dict.fromkeys(b_labels) if s in keep and s not in shared]
    a = _turned(a, a_labels, [*batch, *left, *summed])
    b = _turned(b, b_labels, [*batch, *summed, *right])
    lead, k = len(batch), len(summed)
    common = torch.broadcast_shapes(a.shape[:lead], b.shape[:lead])
    terms = torch.broadcast_shapes(a.shape[a.dim() - k:], b.shape[lead:lead + k])
    outer, inner = a.shape[lead:a.dim() - k], b.shape[lead + k:]
    a = a.expand(*common, *outer, *terms).reshape(*common, outer.numel(), terms.numel())
    b = b.expand(*common, *terms, *inner).reshape(*common, terms.numel(), inner.numel())
    y = multiply(a, b, formats, stream, first) if summed else a * b
    return y.reshape(*common, *outer, *inner), [*batch, *left, *right]


def _parse(equation, operands):
    """Labels, as numbers, of each operand and of the result; dimensions of ``...`` have their own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(operands):
        raise ValueError(f"Equation must have a term for each of {len(operands)} operands, not {equation!r}")
    letters, spread, terms = string.ascii_letters, 0, []

    def labels(text, dots):
        before, found, after = text.partition("...")
        if not set(before + after) <= set(letters):
            raise ValueError(f"Equation must have letters and '...', not {equation!r}")
        middle = list(range(len(letters) - dots, len(letters))) if found else []
        return [*map(letters.index, before), *middle, *map(letters.index, after)]
    for text, operand in zip(texts, operands, strict=True):
        dots = operand.dim() - len(text.replace("...", ""))
        if dots < 0 or dots and "..." not in text:
            raise ValueError(f"Term {text!r} of the equation must have {operand.dim()} dimensions")
        spread = max(spread, dots)
        terms.append(labels(text, dots))
    if arrow:
        return terms, labels(right, spread)
    once = [c for c in sorted(set(left) - set(",.")) if left.count(c) == 1]
    return terms, labels("..." * ("..." in left) + "".join(once), spread)
