"""A network as the pods see it: products of matrices, and which of them feed which.

A product is X (m x k) times W (k x n), in ``groups`` independent copies. Rows of its result are numbered ``(image, y,
x)``; of a batch of products (attention heads) the rows of all copies stand one after the other.

What a product reads depends on earlier ones by *rows* where that is known: row y of the image that it makes depends
on the rows ``stride * y + low .. stride * y + high`` of the image that an earlier product made. Where it is not known,
or where the result depends on all of them (attention's keys, a mean over the image), ``reach`` is None.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reach:
    """Rows of an earlier image that row y needs: ``stride * y + low`` to ``stride * y + high``.

    ``pixel``: a pixel needs the one in its own place alone; else it may need all of those rows. ``heads``: row y needs
    the rows y of all groups of a stacked product.
    """
    stride: int = 1
    low: int = 0
    high: int = 0
    pixel: bool = True
    heads: bool = False

    def after(self, stride: int, low: int, high: int) -> "Reach":
        """This reach, seen from a window over it: row y needs rows ``stride * y + low .. stride * y + high``."""
        return Reach(self.stride * stride, self.stride * low + self.low, self.stride * high + self.high,
                     False, self.heads)


def merged(first: Reach | None, second: Reach | None) -> Reach | None:
    """The rows that either needs; None where that is no reach."""
    if first is None or second is None or (first.stride, first.heads) != (second.stride, second.heads):
        return None
    return Reach(first.stride, min(first.low, second.low), max(first.high, second.high),
                 first.pixel and second.pixel, first.heads)


#: Number of an earlier product -> the rows of it that are needed, or None for all.
Sources = Mapping[int, Reach | None]


def together(several: Iterable[Sources]) -> dict[int, Reach | None]:
    """What all of several need."""
    sources: dict[int, Reach | None] = {}
    for each in several:
        for number, reach in each.items():
            sources[number] = merged(sources[number], reach) if number in sources else reach
    return sources


@dataclass(frozen=True)
class Gemm:
    """One product of matrices.

    Attributes
    ----------
    name : str
    groups : int
        Independent products of this shape.
    m, k, n : int
        X is m x k, W is k x n, each.
    images, height, width : int
        What the rows are; their product is m, or ``groups * m`` if the products are ``stacked``.
    stacked : bool
        Whether each of the groups has rows of its own (heads of attention) or all have the same (groups of channels).
    sources : mapping
        Number of an earlier product -> :class:`Reach`, or None if all of its result is needed.
    parts : tuple of (int, mapping)
        The channels of X, in order, that share their sources: how many they are, and those. Empty: one part.
    channels : int
        Channels of X in one group, which are the inner dimension of K; 0: all of K.
    """
    name: str
    groups: int
    m: int
    k: int
    n: int
    images: int = 1
    height: int = 1
    width: int = 1
    stacked: bool = False
    sources: Sources = field(default_factory=dict)
    parts: tuple[tuple[int, Sources], ...] = ()
    channels: int = 0

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.groups * self.m * self.k * self.n

    @property
    def flat(self) -> int:
        """Rows of the result, of all images."""
        return self.images * self.height * self.width


@dataclass(frozen=True)
class Graph:
    """A network: its products in an order in which they can run."""
    name: str
    gemms: tuple[Gemm, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all products."""
        return sum(each.macs for each in self.gemms)
