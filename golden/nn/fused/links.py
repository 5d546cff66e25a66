"""Lists of products of all models, which run in machine code."""

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ...fast import chain, kernels, stack
from ..memory import plain

#: What runs in torch instead: called with the tensors.
Own = Callable[[Mapping[str, torch.Tensor]], None]

_WORD = {field[0]: i for i, field in enumerate(chain.Link._fields_)}


class Place(NamedTuple):
    """A contiguous tensor within another one, by that one's name, behind ``offset`` of its numbers."""
    base: str
    shape: Sequence[int]
    offset: int = 0

    def of(self, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The tensor itself."""
        return tensors[self.base].view(-1)[self.offset:self.offset + math.prod(self.shape)].view(self.shape)


class Links:
    """Products and sums in their order: of each model one after the other, in as few calls as can be.

    Parameters
    ----------
    models : int
        Their number.
    """

    def __init__(self, models: int) -> None:
        self.models, self.work = models, 0.0
        self._words: list[int] = []
        self._given: Any = None
        self._moving: list[tuple[int, str, int]] = []
        self._runs: list[Any] = []                     # what runs in torch, or the first and the last link of a call
        self._kept: list[stack.Formats | None] = []

    def add(self, formats: stack.Formats | None = None, **fields: Any) -> None:
        """A link with these ``fields``: numbers; for addresses tensors that stay where they are or a :class:`Place`."""
        first = len(self._kept)
        if not self._runs or callable(self._runs[-1]):
            self._runs.append([first, first])
        self._runs[-1][1] += 1
        link = chain.Link()
        for name, value in fields.items():
            if isinstance(value, Place):
                self._moving.append((first * len(_WORD) + _WORD[name], value.base, 4 * value.offset))
            elif value is not None:
                setattr(link, name, value.data_ptr() if torch.is_tensor(value) else value)
        if formats is not None:
            link.in_formats(formats)
        self._words += (ctypes.c_int64 * len(_WORD)).from_buffer(link)
        self._kept.append(formats)
        m, k, n = (fields.get(name, 0) for name in "mkn")
        self.work += self.models * (m * k * n * kernels.MULTIPLICATION + (m + n) * k * kernels.ELEMENT)

    def _fresh(self):
        """Words of all links, in which addresses that move are still missing."""
        if self._given is None:
            self._given = (ctypes.c_int64 * len(self._words))(*self._words)
        return type(self._given).from_buffer_copy(self._given)

    def call(self, own: Own) -> None:
        """What runs in torch at this place."""
        self._runs.append(own)

    def __call__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Run all on contiguous tensors, by their names."""
        words = self._fresh()
        at = {name: tensor.data_ptr() for name, tensor in tensors.items()}
        for word, base, offset in self._moving:
            words[word] = at[base] + offset
        for run in self._runs:
            if callable(run):
                run(tensors)
            else:
                first, last = run
                chain.run(ctypes.addressof(words), first, last, self.models, self.work)


def operands(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> dict[str, Any]:
    """The fields of a product of a (models, M, K) and b (models, K, N), plus bias (models, N)."""
    (a_step, am, ak), (b_step, bk, bn) = a.stride(), b.stride()
    return dict(a=a, b=b, bias=bias, a_step=a_step, am=am, ak=ak, b_step=b_step, bk=bk, bn=bn,
                bias_step=0 if bias is None else bias.stride(0), m=a.shape[1], k=a.shape[2], n=b.shape[2])


def product(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None, dots: int = 0) -> torch.Tensor:
    """Of each model ``a b + bias`` in FP32: (models, M, K), (models, K, N), (models, N) or None.

    Added along K, or as ``dots`` in lanes, for which K is contiguous in both.
    """
    a, b, y = plain(a), plain(b), torch.empty(len(a), a.shape[1], b.shape[2])
    add, add_step = (None, 0) if bias is None else (bias.data_ptr(), bias.stride(0))
    link = chain.Link(a.data_ptr(), b.data_ptr(), add, None, y.data_ptr(), *a.stride(), *b.stride(), add_step,
                      *a.shape[1:], b.shape[2], 0, dots)
    chain.run(ctypes.addressof(link), 0, 1, len(a), y.numel() * a.shape[2] * kernels.MULTIPLICATION)
    return y


def row_sums(g: torch.Tensor) -> torch.Tensor:
    """Sums over the rows of contiguous g (models, M, N), (models, N), in the order in which torch adds many columns."""
    models, m, n = g.shape
    y, added = torch.empty(models, n), Links(models)
    added.add(a=g, a_step=m * n, y=y, m=m, n=n, sums=chain.WIDE)
    added({})
    return y
