"""Convolutions of few channels, or of groups: lines of pixels come to V, and patches are turned on their way to X.

A line of a channel comes to V once for each column of the kernel, from the first pixel that it meets on. So lines one
below the other have the terms of patches, one in each lane, and of several images or groups side by side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product

from hbfp.isa.instructions import Opcode

from ..builder import Builder
from ..memory import Value
from ..schedule import Span
from .after import After
from .core import Core
from .matrix import PASS
from .paired import ahead
from .rectangle import rectangle
from .weights import Steps, Weights, plan, tall

#: Cycles of a run of numbers that is loaded, and of a CONVERT besides its words.
RUN, BESIDE = 4.3, 24
#: Groups at a time.
GROUPS = 16


@dataclass(frozen=True)
class Lines:
    """Images whose pixels of a line follow each other, those of each phase of a stride for themselves.

    Attributes
    ----------
    value : Value
        Images (N, C, H, W) with the borders that patches reach, each line in the order of the phases.
    size, stride : (int, int)
        Of the kernel, whose lines are neighbours.
    starts : sequence of int
        For each column of the kernel, where in a line the pixels of patches begin.
    pixels : (int, int)
        Patches down and across an image.
    """
    value: Value
    size: Sequence[int]
    stride: Sequence[int]
    starts: Sequence[int]
    pixels: Sequence[int]


def words_of(build: Builder, planes: int, across: int) -> int:
    """Words of lines of so many patches, one behind the other."""
    return -(-planes * across // build.lanes)


def cycles(build: Builder, terms: int, across: int, planes: int) -> float:
    """Cycles of the converter for a line of so many patches, of each of ``planes`` that it turns at a time."""
    high = -(-terms // tall(build)) * tall(build)
    return (2 * high * words_of(build, planes, across) + BESIDE) / planes


def lines_fit(build: Builder, weights: Weights, dilation: Sequence[int], across: int, operands: int) -> bool:
    """Whether X, W and V have room for lines of so many patches, with so many operands behind the product, commands
    take them, and tiles end with them.
    """
    core, terms, wide = build.accelerator.core, weights.terms, weights.wide
    if (build.accelerator.oblong or dilation[0] != 1 or across > core.depth
            or core.format.square and across % core.format.terms):
        return False
    cut, words = plan(build, weights), words_of(build, 1, across)
    return (not cut.streamed and cut.group == cut.columns
            and 2 * words * build.lanes * cut.tiles * wide.digits <= build.x.size
            and 4 * terms * words <= build.v.size and 4 * (2 + operands) * across * cut.columns <= build.v.size)


def windows_fit(build: Builder, weights: Weights, tall: int, stride: int, across: int, after: After) -> bool:
    """Whether the lines of patches that windows behind them have are one command, and V and X hold them twice.

    Patches are ``tall`` lines high, ``stride`` lines apart, and so many ``across``, of one image or several.
    """
    cut, lines, words = plan(build, weights), after.step[0], words_of(build, 1, across)
    return (lines * across <= build.accelerator.core.depth and lines * across * cut.columns <= after.share
            and 4 * weights.terms // tall * words * ((lines - 1) * stride + tall) <= build.v.size
            and 2 * lines * words * build.lanes * cut.tiles * weights.wide.digits <= build.x.size)


def turned(build: Builder, lines: Lines, groups: int, kernel: Callable[[int], tuple[Weights, Steps]], output: Value,
           after: After) -> None:
    """Such a convolution: (N, O, OH, OW); ``kernel`` gives weights and steps of a group."""
    n, channels = lines.value.shape[0], lines.value.shape[1] // groups
    outs = output.shape[1] // groups
    terms = lines.size[0] * lines.size[1] * channels
    cut = plan(build, Weights(terms, outs))
    most = max(each for each in range(1, GROUPS + 1) if each == 1 or (
        4 * terms * (words := words_of(build, each, lines.pixels[1])) <= build.v.size
        and 4 * words * build.lanes * cut.tiles <= build.x.size
        and 4 * each * cut.tiles * build.lanes * cut.columns <= build.w.size))
    for first in range(0, groups, most):
        some = min(most, groups - first)
        cores = [Core(build, *kernel(first + group)) for group in range(some)]
        targets = [output.view(lambda where, at=first + group: where.narrow(1, at * outs, outs).permute(0, 2, 3, 1))
                   for group in range(some)]
        _together(build, lines, cores, targets, (n, first * channels, channels), after)
        build.forget()


def _together(build, lines, cores, targets, part, after):
    """Groups that come together, or the one that there is, of so many images and channels from the second of ``part``
    on.
    """
    machine, wide, cut = build.accelerator, cores[0].weights.wide, cores[0].plan
    (n, first, channels), (oh, ow), (kh, kw) = part, lines.pixels, lines.size
    single, terms = len(cores) == 1, kh * kw * channels
    # Images that come together, where there is one group: fewer if lines come again for those below.
    beside = max(each for each in range(1, min(n, GROUPS) + 1 if single else 2) if each == 1 or (
        16 * terms * words_of(build, each, ow) <= build.v.size
        and windows_fit(build, cores[0].weights, kh, lines.stride[0], each * ow, after)))
    planes, across = (beside, beside * ow) if single else (len(cores), ow)    # pixels of a command's line
    words = words_of(build, planes, ow)                    # of a term of a line of patches of all
    pixels, line = words * build.lanes, kw * channels * words    # words of X, and of V of a line of pixels
    deep = min((build.v.size // 4 // line - kh) // lines.stride[0] + 1, oh)    # lines of patches in V
    down = min(deep, build.x.size // 2 // (pixels * cut.tiles * wide.digits), PASS * machine.core.rows // across,
               after.share // (across * cut.columns), machine.core.depth // across)
    deep, down = (max(1, each // after.step[0]) * after.step[0] for each in (deep, down))    # whole windows
    spaces = cycle(build.x.two(down * pixels * cut.tiles * wide.digits))
    high = (deep - 1) * lines.stride[0] + kh
    places = [build.keep(high * line) for _ in range(2)]
    for span in places:                                    # what lies beside lines is some number
        build.fill(span.start, high * line)
    (_, image), (_, channel), (_, step), _ = lines.value.dims()

    def load(place, here, several, y, tall_):
        """Lines that patches of ``tall_`` lines from line ``y`` on reach, of several images from ``here`` on; yields
        behind each that is a column's of a channel.
        """
        rows = (tall_ - 1) * lines.stride[0] + kh
        loops = [(several, image if single else channels * channel, ow), (rows, step, line * build.lanes)]
        for (column, start), own in product(enumerate(lines.starts), range(channels)):
            address = lines.value.address + here * image + (first + own) * channel + y * lines.stride[0] * step + start
            element = (place.start + (column * channels + own) * words) * build.lanes
            if whole := ow // build.lanes:
                build.gather(address, build.lanes, [(whole, build.lanes, build.lanes), *loops], element)
            if rest := ow % build.lanes:
                build.gather(address + whole * build.lanes, rest, loops, element + whole * build.lanes)
            yield

    def convert(start, span, low, several, tall_):
        """The patches of ``tall_`` lines to X."""
        there = words_of(build, several, ow)
        for number, (part, fields) in product(range(tall_), enumerate(wide.rows())):
            base, own = start + number * lines.stride[0] * line, span.start + part * low + number * pixels
            build.schedule.emit(Opcode.CONVERT, {
                "columns": 1, "base": base, "words": there, "rows": terms, "stride": words, "target": own,
                "target_word": build.lanes, "target_row": tall_ * pixels, **fields},
                [Span("V", base, base + (terms - 1) * words + there)],
                [Span("X", own, own + (cut.tiles - 1) * tall_ * pixels + there * build.lanes)])

    def commands():
        """What is in X for several lines of patches of images, or of an image's groups."""
        bands = [(here, min(beside, n - here) if single else planes, y, min(deep, oh - y))
                 for here, y in product(range(0, n, beside), range(0, oh, deep))]
        coming = load(places[0], *bands[0])
        for number, (here, several, top, rows) in enumerate(bands):
            place, pieces = places[number % 2], -(-kw * channels // -(-rows // down))
            for _ in coming:
                pass
            coming = load(places[1 - number % 2], *bands[number + 1]) if number + 1 < len(bands) else iter(())
            for y in range(0, rows, down):
                tall_ = min(down, rows - y)
                low = tall_ * pixels * cut.tiles
                space = next(spaces)
                span = Span("X", space.start, space.start + low * wide.digits)
                convert(place.start + y * lines.stride[0] * line, span, low, several, tall_)
                yield span, here, several, top + y, tall_, low
                for _ in islice(coming, pieces):           # what the next lines take comes among these
                    pass
    for span, here, several, y, tall_, low in ahead(commands()):
        images, wide_ = (several, several * ow) if single else (1, ow)
        for plane, (core, target) in enumerate(zip(cores, targets, strict=True)):
            (where, there), some = core.place(0, cut.columns), cut.columns
            if not there:
                core.bring(where, 0, some)
            dims = [target.dims(), *(each.dims() for each in after.others)]
            with rectangle(build, after, target, dims, (here, y, 0), (tall_, ow), (0, some), images) as result:
                core.multiply(span, {
                    "base": span.start + plane * ow, "rows0": wide_, "rows1": tall_, "row0": 1, "row1": pixels,
                    "passes0": cut.tiles, "passes1": 1, "passes2": 1, "pass0": tall_ * pixels,
                    **wide.multiply(low)}, where, some, result, some, 0)
