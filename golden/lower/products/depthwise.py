"""Depthwise convolutions: patches of a word's channels are turned together, and one command has all of them.

Taps lie one below the other in V, pixels beside each other, a word each: CONVERT makes of a column of taps a row of X
for each channel. All of them are multiplied with one matrix that has a column for each channel, and of the rows of
channel n DRAIN leaves lane n.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product

from hbfp.isa.instructions import Opcode

from ..builder import Builder
from ..memory import Value
from ..schedule import Span
from .after import After
from .core import Core
from .paired import ahead
from .passes import even
from .rectangle import rectangle
from .weights import Steps, Weights, plan, tall

#: Cycles of a result that is stored alone, and of what is loaded for it, besides its patch's conversion.
ALONE = 8
#: Words of channels that come together, in bursts.
TOGETHER = 4


@dataclass(frozen=True)
class Taps:
    """Images whose patches are taken, and how: numbers are (down, across).

    Attributes
    ----------
    value : Value
        Images (N, C, H, W), channels innermost.
    size, stride, padding : (int, int)
        What patches reach beyond images is zeros; ``padding`` is how far they begin in front of them, which may be less
        than 0.
    step : int
        From a tap to the next across.
    pixels : (int, int)
        Patches of an image.
    """
    value: Value
    size: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]
    step: int
    pixels: Sequence[int]

    @property
    def count(self) -> int:
        """Taps of a patch."""
        return self.size[0] * self.size[1]

    def there(self, column: int, first: int, pixels: int) -> tuple[int, int]:
        """Of ``pixels`` patches across from ``first`` on, those whose tap in this column lies in the image."""
        at = column * self.step - self.padding[1] + first * self.stride[1]    # the first one's
        low = min(max(-(at // self.stride[1]), 0), pixels)
        return low, max(min(-((at - self.value.shape[3]) // self.stride[1]), pixels), low)


def depthwise_fits(build: Builder, weights: Weights, channels: int) -> bool:
    """Whether X and V have room for patches of so many channels, and words of them come sooner than single numbers."""
    machine = build.accelerator
    high = -(-weights.terms // tall(build)) * tall(build)
    return (not machine.oblong and not machine.core.format.square and weights.wide.tiles == 1
            and 4 * weights.terms <= build.v.size and 2 * high * build.lanes <= build.x.size * machine.core.rows
            and (weights.terms + high) * -(-channels // build.lanes) <= (2 * high / build.lanes + ALONE) * channels)


def depthwise(build: Builder, taps: Taps, kernel: Callable[[int, int], Weights], steps: Steps, output: Value,
              after: After) -> None:
    """Such a convolution: (N, C, OH, OW); ``kernel`` gives weights (taps, channels) of channels, from a first one on.

    Images lie in whole words of channels, and :func:`depthwise_fits`.
    """
    lanes, channels = build.lanes, output.shape[1]
    words, tiles = -(-channels // lanes), plan(build, Weights(taps.count, lanes)).tiles
    most = max(1, min(TOGETHER, build.v.size // 4 // taps.count, build.x.size // 2 // (lanes * tiles)))
    for first in range(0, words, share := even(words, most)):
        some = min(share * lanes, channels - first * lanes)
        core = Core(build, kernel(first * lanes, some), steps.part(first * lanes, some))
        _group(build, taps, core, (first, some), output, after)
        build.forget()


def _group(build, taps, core, part, output, after):
    """A group of words, which lie side by side: its first word, and its channels."""
    (first, channels), machine, lanes, tiles = part, build.accelerator.core, build.lanes, core.plan.tiles
    n, (oh, ow), (kh, kw), sh, words = taps.value.shape[0], taps.pixels, taps.size, taps.stride[0], core.plan.columns
    flat = Value(output.where.permute(0, 2, 3, 1), output.home)
    every = [each.dims() for each in (flat, *after.others)]
    (where, _) = core.place(0, words)
    core.bring(where, 0, words)
    room = build.v.size // 4 // words
    strip = even(ow, room // taps.count)                   # patches across, whose taps are in V
    lines = max(1, min((room // (strip * kw) - kh) // sh + 1, oh))
    places = [build.keep(((lines - 1) * sh + kh) * kw * strip * words) for _ in range(2)]
    most = max(1, min(build.x.size // 2 // (lanes * tiles * words), machine.depth // min(lanes, channels),
                      after.share // words))
    across = even(strip, most)
    down = min(lines, most // strip) if across == strip else 1
    row = words * lanes                                    # rows of X of a pixel
    spaces = cycle(build.x.two(down * across * row * tiles))

    def commands():
        """What is in X for pixels side by side: its span, the image, the first pixel and how many."""
        bands = [(image, y, x, min(lines, oh - y), min(strip, ow - x)) for image, y, x in product(
            range(n), range(0, oh, lines), range(0, ow, strip))]
        coming = _load(build, taps, (first, words), places[0].start, *bands[0])
        for number, (image, y, x, rows, long) in enumerate(bands):
            for _ in coming:
                pass
            place, coming = places[number % 2].start, iter(()) if number + 1 == len(bands) else _load(
                build, taps, (first, words), places[1 - number % 2].start, *bands[number + 1])
            each = [(line, some) for line in range(0, rows, down) for some in range(0, long, across)]
            for line, some in each:
                size = min(down, rows - line), min(across, long - some)
                span = next(spaces)
                _convert(build, taps, span.start, place + (line * sh * kw * long + some) * words, long * words,
                         (size[0], size[1] * words), tiles)
                yield (Span("X", span.start, span.start + size[0] * size[1] * row * tiles),
                       (image, y + line, x + some), size)
                for _ in islice(coming, -(-kw // len(each))):    # what the next band takes comes among these
                    pass
    for span, at, size in ahead(commands()):
        pixels = size[0] * size[1]
        with rectangle(build, after, flat, every, at, size, (first, words)) as result:
            for word in range(words):
                own = where.start + word * core.height
                core.multiply(span, {
                    "base": span.start + word * lanes, "rows0": pixels, "rows1": min(lanes, channels - word * lanes),
                    "row0": row, "row1": 1, "passes0": tiles, "passes1": 1, "passes2": 1, "pass0": pixels * row},
                    Span("W", own, own + core.height), 1,
                    Span("V", result.start + word, result.start + word + (pixels - 1) * words + 1), words, word,
                    diagonal=True)


def _load(build: Builder, taps: Taps, part: tuple[int, int], place: int, image: int, y: int, x: int, rows: int,
          long: int) -> Iterator[None]:
    """The taps of ``rows`` lines of ``long`` patches to V: of each line of the image one line of pixels for each column
    of the kernel, of words from the first of ``part`` on, as many as it says. Yields behind each column.
    """
    (word, words), (kh, kw), (sh, sw), dims, lanes = part, taps.size, taps.stride, taps.value.dims(), build.lanes
    line, high, top = long * words, (rows - 1) * sh + kh, y * sh - taps.padding[0]
    first, stop = min(max(-top, 0), high), max(min(taps.value.shape[2] - top, high), 0)
    for begin, lines in ((0, first), (max(first, stop), high - max(first, stop))):
        if lines:
            build.fill(place + begin * kw * line, lines * kw * line)
    for column in range(kw):
        low, end = taps.there(column, x, long)
        at = place + first * kw * line + column * line
        for begin, pixels in ((0, low), (end, long - end)):
            if pixels and stop > first:
                build.fill(at + begin * words, pixels * words, lines=stop - first, pitch=kw * line)
        if end > low and stop > first:
            pixel, step = (x + low) * sw + column * taps.step - taps.padding[1], sw * dims[3][1]
            address = (taps.value.address + word * lanes + image * dims[0][1] + (top + first) * dims[2][1]
                       + pixel * dims[3][1])
            loops = [(end - low, step, words), (stop - first, dims[2][1], kw * line)]
            whole = step == words * lanes                  # pixels that follow each other
            build.words(address, words * (end - low) if whole else words, loops[whole:], at + low * words)
        yield


def _convert(build, taps, target, base, line, size, tiles):
    """The patches of lines of pixels to X, line by line; ``size`` is lines, and words of each."""
    (down, words), lanes, kw = size, build.lanes, taps.size[1]
    rows = down * words * lanes
    for number in range(down):
        start, own = base + number * taps.stride[0] * kw * line, target + number * words * lanes
        build.schedule.emit(Opcode.CONVERT, {
            "columns": 1, "base": start, "words": words, "rows": taps.count, "stride": line, "target": own,
            "target_word": lanes, "target_row": rows},
            [Span("V", start, start + (taps.count - 1) * line + words)],
            [Span("X", own, own + (tiles - 1) * rows + words * lanes)])
