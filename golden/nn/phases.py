"""The phases of a stride: of which taps of a kernel, and of which of its results, the gradient of each pixel is made.

docs/numerics.md, section 9, has the law. Pixels of a convolution's input that are a stride apart meet the same taps,
and their gradient is a convolution of g with these alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import Any


@dataclass(frozen=True)
class Line:
    """A phase along one dimension.

    Attributes
    ----------
    first, count : int
        Its first pixel, and how many it has, a stride apart.
    taps : tuple of int
        The kernel's taps that meet it, from the last on; there may be none.
    corner : int
        Where g begins within what patches are taken of, from the first tap of the first pixel on: behind so many zeros,
        or so many numbers before it.
    step : int
        From the number of g that a tap meets to that of the next tap.
    """
    first: int
    count: int
    taps: tuple[int, ...]
    corner: int
    step: int

    @property
    def side(self) -> int:
        """Numbers that its patches are taken of."""
        return self.count + self.step * (len(self.taps) - 1)


def lines(kernel: int, side: int, stride: int, padding: int, dilation: int) -> Iterator[Line]:
    """The phases along a dimension of ``side`` pixels, by their first pixel."""
    for first in range(min(stride, side)):
        taps = tuple(tap for tap in reversed(range(kernel)) if (first + padding - dilation * tap) % stride == 0)
        corner = -((first + padding - dilation * taps[0]) // stride) if taps else 0
        yield Line(first, len(range(first, side, stride)), taps, corner, dilation // gcd(dilation, stride))


@dataclass(frozen=True)
class Phase:
    """A phase of images, or of volumes: a line for each dimension, columns last."""
    lines: tuple[Line, ...]
    stride: tuple[int, ...]

    @property
    def down(self) -> Line:
        """Along the rows of pixels."""
        return self.lines[-2]

    @property
    def across(self) -> Line:
        """Along a row."""
        return self.lines[-1]

    @property
    def size(self) -> Any:
        """Of its kernel; here and below a number for each dimension."""
        return tuple(len(line.taps) for line in self.lines)

    @property
    def taps(self) -> list[tuple[int, ...]]:
        """Rows and columns of an image's kernel in the order of K: kernel row by kernel row, each from the last on."""
        return list(product(*(line.taps for line in self.lines)))

    @property
    def empty(self) -> bool:
        """Whether no tap meets it, so that its gradient is +0."""
        return not prod(self.size)

    @property
    def corner(self) -> Any:
        """:attr:`Line.corner`."""
        return tuple(line.corner for line in self.lines)

    @property
    def sides(self) -> Any:
        """:attr:`Line.side`."""
        return tuple(line.side for line in self.lines)

    @property
    def step(self) -> Any:
        """The dilation of its convolution, whose stride is 1."""
        return tuple(line.step for line in self.lines)

    @property
    def places(self) -> tuple[slice, ...]:
        """Its pixels."""
        return tuple(slice(line.first, None, step) for line, step in zip(self.lines, self.stride, strict=True))


def phases(size: Sequence[int], sides: Sequence[int], stride: Sequence[int], padding: Sequence[int],
           dilation: Sequence[int]) -> list[Phase]:
    """The phases of images or volumes with these sides, line by line."""
    return list(_phases(*map(tuple, (size, sides, stride, padding, dilation))))


@lru_cache(64)
def _phases(size, sides, stride, padding, dilation):
    each = (list(lines(*own)) for own in zip(size, sides, stride, padding, dilation, strict=True))
    return [Phase(found, stride) for found in product(*each)]
