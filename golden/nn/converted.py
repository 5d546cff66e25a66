"""Operands of products as the kernels of :mod:`golden.gpu` take them."""

from typing import Any

import torch

from hbfp.format import HBFPFormat

from ..gpu.runtime import on, serves
from .formats import Formats
from .memory import plain

__all__ = ["Stack", "product", "serves"]


class Stack:
    """A stack of matrices that is read once for both directions in which training multiplies it.

    Parameters
    ----------
    source : Tensor
        (S, rows, columns), detached.
    fmt : HBFPFormat
        The format.
    noise : Tensor of int, optional
        (rows, columns), for ``stochastic``; S is 1 then.
    both : bool
        Whether the other direction will be asked for when one is. It is made in the same pass, and kept; what was asked
        for is not, since a product takes each direction once.
    """

    def __init__(self, source: torch.Tensor, fmt: HBFPFormat, noise: torch.Tensor | None = None, *,
                 both: bool = False) -> None:
        self.source, self.fmt, self.both = source, fmt, both
        self.noise = None if noise is None else noise.to(torch.uint8) if fmt.noise_bits <= 8 else noise
        self._kept: dict[bool, Any] = {}

    def lines(self, down: bool) -> Any:
        """:class:`golden.gpu.convert.Lines` with K along the rows (``down``) or along the columns."""
        if down in self._kept:
            return self._kept[down]
        from ..gpu.convert import converted
        with on(self.source):
            found = converted(plain(self.source), self.fmt, across=self.both or not down, down=self.both or down,
                              noise=self.noise)
        if self.both:
            self._kept[not down] = found[not down]
        return found[down]


def product(a: Any, b: Any, formats: Formats) -> torch.Tensor:
    """:func:`golden.gpu.product.product` of lines (S, M, K) and (S, N, K): (S, M, N) float32."""
    from ..gpu.product import product as multiply
    with on(a.data):
        return multiply(a, b, formats.accumulate, guard=formats.guard, growth=formats.growth)
