"""Convolutions of few channels: X holds planes of words, each of several pixels as one word of a patch has them.

A word of a patch has so many neighbours in the order of the kernel's elements. Words whose neighbours lie alike share a
plane, which has the word of every place, zeros around the image included; so patches are addresses again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from ..builder import Builder
from ..memory import Value
from ..schedule import Span
from .after import After
from .core import Core
from .matrix import PASS, to_x
from .passes import Portion, even
from .rectangle import rectangle
from .weights import Steps, Weights, plan

Place = tuple[int, int]


@dataclass
class Words:
    """The words of a patch: the first pixel of each, and the places of all its pixels from there on."""
    first: list[Place]
    alike: list[tuple[Place, ...]]

    @property
    def planes(self) -> list[tuple[Place, ...]]:
        """Those that differ."""
        return list(dict.fromkeys(self.alike))


def words_of(size: Sequence[int], dilation: Sequence[int], beside: int) -> Words:
    """The words of a patch, of ``beside`` pixels each."""
    taps = [(y * dilation[0], x * dilation[1]) for y, x in product(range(size[0]), range(size[1]))]
    cut = [taps[at:at + beside] for at in range(0, len(taps), beside)]
    return Words([each[0] for each in cut],
                 [tuple((y - each[0][0], x - each[0][1]) for y, x in each) for each in cut])


def fits(build: Builder, value: Value, weights: Weights, size: Sequence[int], stride: Sequence[int],
         padding: Sequence[int], dilation: Sequence[int]) -> bool:
    """Whether planes take fewer runs than gathered patches of images (N, C, H, W), and fit X and V, the weight W."""
    n, c, h, w = value.shape
    form, lanes = build.accelerator.core.format, build.lanes
    if build.accelerator.oblong or form.square or form.terms > lanes or lanes % c or value.dims()[3][1] != lanes \
            or not value.whole_words(1, lanes) or plan(build, weights).streamed:
        return False
    found = words_of(size, dilation, lanes // c).planes
    if stride[0] * stride[1] * sum(len(each) - 1 for each in found) >= size[0] * -(-size[1] * c // lanes):
        return False
    count, across = len(found) * weights.wide.digits, w + 2 * padding[1]
    return 2 * count * (dilation[0] * (size[0] - 1) + 1) * across <= build.x.size and 6 * across <= build.v.size


def planes(build: Builder, value: Value, weights: Weights, steps: Steps, output: Value, size: Sequence[int],
           stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], after: After) -> None:
    """A convolution of (N, C, H, W) for which :func:`fits` is true: (N, O, OH, OW)."""
    core, machine = Core(build, weights, steps), build.accelerator
    (sh, sw), (ph, pw) = stride, padding
    n, c, h, w = value.shape
    oh, ow = output.shape[2:]
    flat = Value(output.where.permute(0, 2, 3, 1), output.home)
    every = [each.dims() for each in (flat, *after.others)]
    words = words_of(size, dilation, build.lanes // c)
    wide, reach, count = weights.wide, dilation[0] * (size[0] - 1) + 1, len(words.planes)
    line = w + 2 * pw                                      # words of a line of a plane
    band = max(b for b in range(1, oh + 1)
               if b == 1 or 2 * count * wide.digits * ((b - 1) * sh + reach) * line <= build.x.size)
    most = max(1, min(machine.core.depth, after.share, PASS * machine.core.rows))
    across = even(ow, most)
    for image, top in product(range(n), range(0, oh, band)):
        rows = min(band, oh - top)
        lines = (rows - 1) * sh + reach
        low = count * lines * line
        span = build.x.take(low * wide.digits)
        base = {each: span.start + number * lines * line for number, each in enumerate(words.planes)}
        for each in words.planes:
            _plane(build, value, each, (ph, pw), image, top * sh, lines, base[each], wide, low)
        for start, some in core.groups():
            where, there = core.place(start, some)
            assert where is not None
            if not there:
                core.bring(where, start, some)
            down = even(rows, max(1, most // ow)) if across == ow else 1
            for y, x, column in product(range(top, top + rows, down), range(0, ow, across), range(some)):
                tall, long = min(down, top + rows - y), min(across, ow - x)
                fields = {"rows0": long, "rows1": tall, "row0": sw, "row1": sh * line, "passes0": 1, "passes1": 1,
                          "passes2": 1, **wide.multiply(low)}
                cut = [Portion(number, 1, {**fields, "base": base[alike] + ((y - top) * sh + dy) * line + x * sw + dx})
                       for number, ((dy, dx), alike) in enumerate(zip(words.first, words.alike, strict=True))]
                own = Span("W", where.start + column * core.height, where.start + (column + 1) * core.height)
                with rectangle(build, after, flat, every, (image, y, x), (tall, long), (start + column, 1)) as result:
                    core.multiply(span, fields, own, 1, result, 1, start + column, cut=cut)


def _plane(build, value, alike, padding, image, first, lines, target, wide, low):
    """Lines ``first`` on of a plane, counted with the border, to X."""
    dims = value.dims()
    (_, _, h, w), (ph, pw), lanes, c = value.shape, padding, build.lanes, value.shape[1]
    across = w + 2 * pw
    most = max(1, build.v.size // 6 // across)
    for line in range(first, first + lines, most):
        some = min(most, first + lines - line)
        here = build.v.take(some * across)
        build.fill(here.start, some * across)
        for place, (dy, dx) in enumerate(alike):
            # Words (y, x) of the piece whose pixel (y + dy - ph, x + dx - pw) is one of the image.
            top, left = max(0, ph - dy - line), max(0, pw - dx)
            bottom, right = min(some, h + ph - dy - line), min(across, w + pw - dx)
            if bottom <= top or right <= left:
                continue
            at = value.address + image * dims[0][1] + (line + top + dy - ph) * dims[2][1] + (left + dx - pw) * lanes
            word = here.start + top * across + left
            if place == 0:
                build.words(at, right - left, [(bottom - top, dims[2][1], across)], word)
            else:
                build.gather(at, c, [(right - left, lanes, lanes), (bottom - top, dims[2][1], across * lanes)],
                             word * lanes + place * c)
        to_x(build, here, some * across, 1, target + (line - first) * across, 1, 1, wide, low)
