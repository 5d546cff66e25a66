"""The phases of a stride: of which taps of a kernel, and of which of its results, the gradient of each pixel is made.

docs/numerics.md, section 9, has the law. Pixels of a convolution's input that are a stride apart meet the same taps,
and their gradient is a convolution of g with these alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

Pair = tuple[int, int]


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
    """A phase of images, down and across; what it says of each dimension is a pair."""
    down: Line
    across: Line
    stride: Pair

    @property
    def size(self) -> Pair:
        """Of its kernel."""
        return len(self.down.taps), len(self.across.taps)

    @property
    def taps(self) -> list[Pair]:
        """Rows and columns of the kernel in the order of K: kernel row by kernel row, each from the last on."""
        return list(product(self.down.taps, self.across.taps))

    @property
    def empty(self) -> bool:
        """Whether no tap meets it, so that its gradient is +0."""
        return not prod(self.size)

    @property
    def corner(self) -> Pair:
        """:attr:`Line.corner`."""
        return self.down.corner, self.across.corner

    @property
    def sides(self) -> Pair:
        """:attr:`Line.side`."""
        return self.down.side, self.across.side

    @property
    def step(self) -> Pair:
        """The dilation of its convolution, whose stride is 1."""
        return self.down.step, self.across.step

    @property
    def places(self) -> tuple[slice, slice]:
        """Its pixels, down and across."""
        return slice(self.down.first, None, self.stride[0]), slice(self.across.first, None, self.stride[1])


def phases(size: Sequence[int], sides: Sequence[int], stride: Sequence[int], padding: Sequence[int],
           dilation: Sequence[int]) -> list[Phase]:
    """The phases of images with these sides, line by line."""
    down, across = (list(lines(*each)) for each in zip(size, sides, stride, padding, dilation, strict=True))
    return [Phase(*each, (stride[0], stride[1])) for each in product(down, across)]
