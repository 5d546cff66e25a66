"""Convolutions whose blocks are two words, and pixels one: X holds the pairs of pixels that blocks of patches are.

A block of a patch is two taps in the order of the kernel's elements. Blocks whose taps lie alike share a plane, which
has the pair of every place, zeros around the image included; so patches are addresses.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle, product
from typing import Any

from ..builder import Builder
from ..memory import Value
from ..schedule import Span
from .after import After
from .core import Core
from .matrix import PASS, to_x
from .passes import Portion, even
from .planes import Place, Words, words_of
from .rectangle import rectangle
from .weights import Steps, Weights, plan
from .wide import Wide

#: Lines of pairs in V.
LINES = 4
#: Places of the taps of a block, the first one's (0, 0).
Alike = tuple[Place, ...]


@dataclass(frozen=True)
class Plane:
    """Pairs of pixels, of which the second is (down, right) of the first, or there is none.

    Attributes
    ----------
    apart : (int, int) or None
    down : (int, int)
        First line that has pairs, counted from that of a patch's first tap, and how many more than there are patches.
    across : (int, int)
        The same of pixels.
    base : int
        Its address in X, from the first plane's.
    """
    apart: Place | None
    down: Place
    across: Place

    @property
    def words(self) -> int:
        """Words of a pair."""
        return 1 if self.apart is None else 2

    def line(self, across: int) -> int:
        """Words of a line, of so many patches."""
        return (across + self.across[1]) * self.words

    def size(self, lines: int, across: int) -> int:
        """Words of X for so many lines of patches."""
        return (lines + self.down[1]) * self.line(across)


def planes_of(words: Words) -> dict[Alike, Plane]:
    """The planes of a patch's blocks."""
    made = {}
    for alike in words.planes:
        own = [first for first, other in zip(words.first, words.alike, strict=True) if other == alike]
        spans = [(min(each), max(each) - min(each)) for each in zip(*own, strict=True)]
        made[alike] = Plane(alike[1] if len(alike) > 1 else None, spans[0], spans[1])
    return made


def pairs_fit(build: Builder, value: Value, weights: Weights, size: Sequence[int], stride: Sequence[int],
              dilation: Sequence[int], pixels: Sequence[int]) -> bool:
    """Whether patches are pairs of pixels (N, C, H, W), and X and V have room, W for a weight."""
    core, lanes, c = build.accelerator.core, build.lanes, value.shape[1]
    if build.accelerator.oblong or not core.blocked or core.format.block != (1, 2 * lanes) or c != lanes or any(
            each > 1 for each in stride) or not value.whole_words(1, lanes) or plan(build, weights).streamed:
        return False
    planes = planes_of(words_of(size, dilation, 2))
    if sum(2 * each.words for each in planes.values()) >= 2 * plan(build, weights).tiles:
        return False
    across = pixels[1]
    return (2 * sum(each.size(1, across) for each in planes.values()) * weights.wide.digits <= build.x.size
            and 2 * sum(each.line(across) for each in planes.values()) <= build.v.size // 4)


def paired(build: Builder, value: Value, weights: Weights, steps: Steps, output: Value, size: Sequence[int],
           padding: Sequence[int], dilation: Sequence[int], after: After) -> None:
    """A convolution of (N, C, H, W) for which :func:`pairs_fit` is true: (N, O, OH, OW)."""
    core, machine = Core(build, weights, steps), build.accelerator
    n, oh, ow = output.shape[0], *output.shape[2:]
    flat = Value(output.where.permute(0, 2, 3, 1), output.home)
    every = [each.dims() for each in (flat, *after.others)]
    words, wide = words_of(size, dilation, 2), weights.wide
    planes = planes_of(words)
    lines = _Lines(build, value, planes, ow, padding, wide)
    band = max(b for b in range(1, oh + 1)
               if b == 1 or 2 * sum(each.size(b, ow) for each in planes.values()) * wide.digits <= build.x.size)
    most = max(1, min(machine.core.depth, after.share, PASS * machine.core.rows))
    across = even(ow, most)

    def commands():
        """Bands, and of each its commands: where they are in the output, of which columns, whether these are new, and
        what is in X.
        """
        spaces = cycle(build.x.two(sum(each.size(band, ow) for each in planes.values()) * wide.digits))
        for image, top in product(range(n), range(0, oh, band)):
            rows = min(band, oh - top)
            place = lines.begin(image, top, rows, next(spaces))
            for start, some in core.groups():
                down = even(rows, max(1, most // ow)) if across == ow else 1
                for y, x in product(range(0, rows, down), range(0, ow, across)):
                    tall = min(down, rows - y)
                    lines.bring(y + tall)
                    yield (image, top + y, x), (tall, min(across, ow - x)), (start, some, y == x == 0), [
                        place.at(y, x, first, alike) for first, alike in zip(words.first, words.alike, strict=True)
                    ], place.spans(y, y + tall), place.low
    for (image, y, x), (tall, long), (start, some, new), starts, spans, low in ahead(commands()):
        if new:                                            # not ahead: W may have room for one group
            where, there = core.place(start, some)
            assert where is not None
            if not there:
                core.bring(where, start, some)
        for column in range(some):
            cut = [Portion(2 * number, 2, {**each, "rows0": long, "rows1": tall, "passes0": 2, "passes1": 1,
                                           "passes2": 1, **wide.multiply(low)}) for number, each in enumerate(starts)]
            own = Span("W", where.start + column * core.height, where.start + (column + 1) * core.height)
            with rectangle(build, after, flat, every, (image, y, x), (tall, long), (start + column, 1)) as result:
                core.multiply(spans, cut[0].fields, own, 1, result, 1, start + column, cut=cut)


def ahead(each: Iterable[Any]) -> Iterator[Any]:
    """The same, each made before the one before it is given: what a command takes comes during the one before."""
    source = iter(each)
    one = next(source)
    for other in source:
        yield one
        one = other
    yield one


@dataclass(frozen=True)
class _Band:
    """Where the pairs of lines of patches are in X: of each plane an address; low digits lie ``low`` further."""
    planes: dict[Alike, Plane]
    bases: dict[Alike, int]
    across: int
    low: int
    digits: int

    def at(self, y: int, x: int, first: Place, alike: Alike) -> dict[str, int]:
        """Fields of a MULTIPLY: of patch (y, x) and those behind it a block that begins with the tap ``first``."""
        plane = self.planes[alike]
        line = plane.line(self.across)
        at = (y + first[0] - plane.down[0]) * line + (x + first[1] - plane.across[0]) * plane.words
        # Where a pair has one pixel this comes twice: weights of its second one are zeros.
        return {"base": self.bases[alike] + at, "row0": plane.words, "row1": line, "pass0": plane.words - 1}

    def spans(self, first: int, stop: int) -> list[Span]:
        """What lines ``first`` to ``stop - 1`` of patches take."""
        return [Span("X", base + first * plane.line(self.across),
                     base + (stop + plane.down[1]) * plane.line(self.across))
                for alike, plane in self.planes.items()
                for base in range(self.bases[alike], self.bases[alike] + self.digits * self.low, self.low)]


class _Lines:
    """Lines of pairs: in V, with zeros around the image, and in X. They come as commands need them."""

    def __init__(self, build: Builder, value: Value, planes: dict[Alike, Plane], across: int, padding: Sequence[int],
                 wide: Wide) -> None:
        self.build, self.value, self.planes, self.across, self.padding = build, value, planes, across, padding
        self.wide, self.turn = wide, 0
        self.places = {alike: [build.keep(self._place(each)) for _ in range(LINES)] for alike, each in planes.items()}
        for place in (each for places in self.places.values() for each in places):
            build.fill(place.start, place.stop - place.start)

    def _beside(self, plane):
        """Whether the pixels of a pair are neighbours, so that a line of pixels has all pairs."""
        return plane.apart in (None, (0, 1))

    def _place(self, plane):
        """Words of V for a line of a plane."""
        return self.across + plane.across[1] + plane.words - 1 if self._beside(plane) else plane.line(self.across)

    def begin(self, image: int, top: int, rows: int, span: Span) -> _Band:
        """So many lines of patches, from line ``top`` on, go to a span of X; where."""
        sizes = [each.size(rows, self.across) for each in self.planes.values()]
        bases = dict(zip(self.planes, accumulate([span.start, *sizes]), strict=False))
        self.band = _Band(self.planes, bases, self.across, sum(sizes), self.wide.digits)
        self.image, self.top, self.done, self.have = image, top, 0, dict.fromkeys(self.planes, 0)
        return self.band

    def bring(self, stop: int) -> None:
        """Bring what is not there yet of the first ``stop`` lines of patches."""
        while self.done < stop:
            self.done += 1
            for alike, plane in self.planes.items():
                for line in range(self.have[alike], self.done + plane.down[1]):
                    self._line(alike, plane, line)
                self.have[alike] = self.done + plane.down[1]

    def _line(self, alike, plane, line):
        """Line ``line`` of a plane."""
        self.turn = (self.turn + 1) % LINES
        here = self.places[alike][self.turn]
        pairs = self.across + plane.across[1]
        y, x = self.top + line + plane.down[0] - self.padding[0], plane.across[0] - self.padding[1]
        apart = plane.apart or (0, 0)
        each = [(y, x, 0, 1, here.stop - here.start)] if self._beside(plane) else [
            (y, x, 0, 2, pairs), (y + apart[0], x + apart[1], 1, 2, pairs)]
        high, wide = self.value.shape[2:]
        if not all(0 <= top < high for top, *_ in each):
            self.build.fill(here.start, here.stop - here.start)
        dims = self.value.dims()
        for top, left, first, step, count in each:
            skip, stop = max(0, -left), min(count, wide - left)
            if 0 <= top < high and skip < stop:
                address = (self.value.address + self.image * dims[0][1] + top * dims[2][1] + (left + skip) * dims[3][1])
                self.build.words(address, 1, [(stop - skip, dims[3][1], step)], here.start + first + skip * step)
        own = self.band.bases[alike] + line * plane.line(self.across)
        to_x(self.build, here, pairs, plane.words, own, plane.words, 1, self.wide, self.band.low,
             {"stride": 1 if self._beside(plane) else 2})
