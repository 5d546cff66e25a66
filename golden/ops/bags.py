"""Bags of a table's rows: each is a sum of rows, from the first to the last, or that over how many they are."""

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .operation import Operation, Shape, Unsupported, calls

_SUM, _MEAN = 0, 1                                         #: torch's numbers of modes


def bags(index: torch.Tensor, offsets: torch.Tensor, last: bool = False, padding: int = -1) -> list[list[int]]:
    """The rows of each bag, without those of the number ``padding``; with ``last`` the last offset ends one."""
    numbers, places = index.tolist(), offsets.tolist()
    ends = places[1:] if last else [*places[1:], len(numbers)]
    return [[each for each in numbers[start:end] if each != padding] for start, end in zip(places, ends, strict=False)]


def factor(mode: int, rows: Sequence[int]) -> float:
    """What the sum of a bag's rows is multiplied by."""
    return 1 / len(rows) if mode == _MEAN and rows else 1.0


def check(mode: int, weights: Any) -> None:
    """Raise Unsupported for bags that are no sums."""
    if mode not in (_SUM, _MEAN):
        raise Unsupported("mode='max' has no program; 'sum' or 'mean' would do")
    if weights is not None:
        raise Unsupported("per_sample_weights are products of rows; an embedding and products would do")


def _bags(table, index, offsets, scale=False, mode=_SUM, sparse=False, weights=None, last=False, padding=-1):
    check(mode, weights)
    if isinstance(table, FakeTensor) or table.is_meta:
        raise Unsupported("its numbers are not known while it is traced; it stays whole")
    found = []
    for rows in bags(index, offsets, last, padding):
        total = table[rows].sum(0) if rows else torch.zeros_like(table[0])
        found.append(total * factor(mode, rows) if mode == _MEAN else total)
    return torch.stack(found), *(index.new_empty(0) for _ in range(3))


OPERATIONS = (Operation("embedding_bag", calls("_embedding_bag", "_embedding_bag_forward_only"), Shape.PARTS,
                        parts=_bags, kept=lambda table, index, *rest: (index.new_empty(0),) * 3),)
