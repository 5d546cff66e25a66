"""Convolutions whose patches are addresses: X holds pixels.

Where blocks are tiles, so many patches side by side share an exponent for each tap. If tiles end with lines of patches,
those of a tap are the same pixels for every tap of its column, lines apart: X holds pixels once for each column of the
kernel.
"""

from collections.abc import Sequence
from itertools import product

from ..builder import Builder
from ..errors import LoweringError
from ..memory import Value
from ..schedule import Span
from .after import After
from .core import Core
from .draw import Pixels
from .matrix import PASS, to_x
from .passes import even
from .rectangle import rectangle
from .weights import Steps, Weights
from .wide import Wide

#: Lines of images in V, for tiles.
LINES = 8


def convolution(build: Builder, value: Value, weights: Weights, steps: Steps, output: Value, size: Sequence[int],
                stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], after: After,
                drawn: Pixels | None = None) -> None:
    """Patches by address, of (N, C, H, W) whose blocks lie within the channels of a pixel: (N, O, OH, OW).

    What patches reach behind images is zeros, and so are ``padding`` lines and columns in front of them, of which a
    number below 0 takes so many away. ``drawn`` is how images are rounded, if not to nearest. Blocks may be tiles where
    :func:`tiles_fit`.
    """
    core, machine = Core(build, weights, steps), build.accelerator
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = size, stride, padding, dilation
    n, c, h, w = value.shape
    oh, ow = after.pixels(output)
    words, each, wide = -(-c // build.lanes), -(-c // machine.whole), weights.wide
    cells = each * machine.whole // machine.piece          # of a pixel
    passes = cells // machine.row_pieces // core.plan.spread
    flat = Value(output.where.permute(0, 2, 3, 1), output.home)
    dims, every = value.dims(), [each.dims() for each in (flat, *after.others)]
    shifts = machine.core.format.square                    # a plane of pixels for each column of the kernel
    planes, line = (kw, ow) if shifts else (1, w)          # pixels of a line of a plane
    margin = (max(ph, 0) * line + (0 if shifts else max(pw, 0))) * cells
    reach, long_reach = dh * (kh - 1) + 1, dw * (kw - 1) + 1
    beyond = ph > 0 or (oh - 1) * sh - ph + reach > h or not shifts and (
        pw > 0 or (ow - 1) * sw - pw + long_reach > w)
    lay = _Shifted(build, value, ow, kw, sw, pw, dw, wide) if shifts else None

    def space(band):
        return (min((band - 1) * sh + reach, h) * line * cells * planes + margin) * wide.digits
    step = after.step[0]
    fits = [b for b in range(step, oh + 1, step) if space(b) <= build.x.size]
    good = [b for b in fits if b == oh and n == 1 or 2 * space(b) <= build.x.size]
    if not fits:
        least, there = (size // machine.row_pieces for size in (space(1), build.x.size))
        raise LoweringError(f"rows of {w} pixels of {c} channels, {reach} of them, need {least} words of memory X, not "
                            f"{there}; --x-words {1 << (least - 1).bit_length()} would do")
    band = max(good or fits)
    usual = machine.core.depth if core.plan.streamed else PASS * machine.core.rows
    if after.windows is not None:
        usual = max(usual, step * ow)
    most = max(1, min(machine.core.depth, after.share // core.plan.group, usual))
    across = even(ow, most)
    for image in range(n):
        for top in range(0, oh, band):
            rows = min(band, oh - top)
            first = min(max(top * sh - ph, 0), h)
            last = max(min((top + rows - 1) * sh - ph + reach, h), first)
            plane = (last - first) * line * cells
            low = plane * planes + margin                  # of wide pixels, low digits behind all high ones
            span = build.x.take(low * wide.digits)
            base = span.start + margin
            if lay is not None:
                lay.begin(image, first, base, plane, low)
            else:
                _pixels(build, value, dims, image, first, last, words, base, cells, wide, low, drawn)
            for start, some in core.groups():
                where, there = core.place(start, some)
                if not there and where is not None:
                    core.bring(where, start, some)
                down = even(rows, max(1, most // ow // step) * step, step) if across == ow else 1
                for y, x in product(range(top, top + rows, down), range(0, ow, across)):
                    tall_, long = min(down, top + rows - y), min(across, ow - x)
                    at = base + ((y * sh - ph - first) * line + (x if shifts else x * sw - pw)) * cells
                    across_it = {"width": 1} if shifts else {"x": x * sw - pw, "x_row": sw, "x_pass": dw, "width": w}
                    bounded = {"bounded": 1, "y": y * sh - ph, "y_row": sh, "y_pass": dh, "height": h,
                               **across_it} if beyond else {}
                    source = [span]
                    with rectangle(build, after, flat, every, (image, y, x), (tall_, long), (start, some)) as result:
                        if lay is not None:
                            needed = [min(max(each, first), last) for each in (
                                y * sh - ph, (y + tall_ - 1) * sh - ph + reach)]
                            lay.bring(needed[1])
                            source = lay.spans(*needed)
                        core.multiply(source, {
                            "base": at, "rows0": long, "rows1": tall_, "row0": cells if shifts else sw * cells,
                            "row1": sh * line * cells, "passes0": passes, "passes1": kw, "passes2": kh,
                            "pass0": machine.row_pieces * core.plan.spread, "pass1": plane if shifts else dw * cells,
                            "pass2": dh * line * cells, **bounded, **wide.multiply(low)},
                            where, some, result, some, start)


def bands_fit(build: Builder, shape: Sequence[int], weights: Weights, size: Sequence[int], stride: Sequence[int],
              padding: Sequence[int], dilation: Sequence[int], across: int, after: After) -> bool:
    """Whether the lines of pixels that windows have are one command, ``across`` pixels each, and X and V have room for
    them; of images (N, C, H, W), and blocks that are no tiles.
    """
    machine, (_, c, h, w), lines = build.accelerator, shape, after.step[0]
    cells = -(-c // machine.whole) * machine.whole // machine.piece
    tall = min((lines - 1) * stride[0] + dilation[0] * (size[0] - 1) + 1, h)
    return (not machine.core.format.square and lines * across <= machine.core.depth
            and lines * across * -(-weights.columns // build.lanes) <= after.share
            and ((tall + padding[0]) * w + padding[1]) * cells * weights.wide.digits <= build.x.size)


def _pixels(build, value, dims, image, first, last, words, target, cells, wide, low, drawn):
    """Rows of pixels to X."""
    c, w = value.shape[1], value.shape[3]
    most = max(1, build.v.size // 6 // (w * words))
    if w * words > build.v.size // 2:
        raise LoweringError(f"a row of {w} pixels of {c} channels needs {2 * w * words} words of memory V, not "
                            f"{build.v.size}; larger --v-words would do")
    for y in range(first, last, most):
        rows = min(most, last - y)
        here = build.v.take(rows * w * words)
        build.load(value, (), 1, here.start, words, skip=image * dims[0][1] + y * dims[2][1],
                   rows=[(rows, dims[2][1]), dims[3]])
        own = target + (y - first) * w * cells
        to_x(build, here, rows * w, words, own, cells, build.accelerator.word_pieces, wide, low,
             None if drawn is None else drawn.fields(image, y))


def tiles_fit(build: Builder, value: Value, wide: Wide, size: Sequence[int], stride: Sequence[int],
              dilation: Sequence[int], pixels: Sequence[int]) -> bool:
    """Whether blocks are tiles that end with lines of patches, ``pixels`` down and across, and X and V have room."""
    core, c = build.accelerator.core, value.shape[1]
    terms, cells = core.format.terms, c // build.lanes
    if build.accelerator.oblong or not core.format.square or c % max(terms, build.lanes) or pixels[1] % terms \
            or not value.whole_words(1, build.lanes):
        return False
    reach, across = dilation[0] * (size[0] - 1) + 1, stride[1] * pixels[1] + dilation[1] * size[1]
    return (reach * (size[1] + 1) * pixels[1] * cells * wide.digits <= build.x.size    # and a margin
            and 6 * across * cells <= build.v.size)


class _Shifted:
    """Lines of images (N, C, H, W) for tiles: once in V, with zeros beside them, and in X once for each column of the
    kernel, from the first pixel that it meets on, those a stride apart. They come as commands need them.
    """

    def __init__(self, build: Builder, value: Value, across: int, columns: int, stride: int, padding: int, step: int,
                 wide: Wide) -> None:
        self.build, self.value, self.across, self.columns, self.stride = build, value, across, columns, stride
        self.step, self.wide, (_, c, _, w) = step, wide, value.shape
        self.words = c // build.lanes
        self.left, reach = max(padding, 0), (across - 1) * stride + step * (columns - 1) + 1
        self.skip = max(-padding, 0)                       # pixels that no patch reaches
        self.there = min(w - self.skip, reach - self.left)
        self.line = max(self.left + self.there, reach) * self.words
        self.slots = max(1, min(LINES, build.v.size // 4 // self.line))
        self.place = build.keep(self.slots * self.line).start
        if self.there * self.words < self.line:
            build.fill(self.place, self.slots * self.line)
        self.next = 0

    def begin(self, image: int, first: int, target: int, plane: int, low: int) -> None:
        """The lines of an image from line ``first`` on go to ``target`` on; planes, and digits, lie so far apart."""
        self.image, self.first, self.target, self.plane, self.low, self.done = image, first, target, plane, low, first

    def bring(self, stop: int) -> None:
        """Bring lines in front of ``stop`` that are not there yet."""
        dims, words = self.value.dims(), self.words
        while self.done < stop:
            lines, slot = min(self.slots - self.next, stop - self.done), self.next
            self.build.words(self.value.address + self.image * dims[0][1] + self.done * dims[2][1]
                             + self.skip * dims[3][1], self.there * words, [(lines, dims[2][1], self.line)],
                             self.place + slot * self.line + self.left * words)
            for line, column in product(range(lines), range(self.columns)):
                own = self.target + column * self.plane + (self.done + line - self.first) * self.across * words
                at = self.place + (slot + line) * self.line + column * self.step * words
                to_x(self.build, Span("V", at, at + ((self.across - 1) * self.stride + 1) * words), self.across, words,
                     own, words, 1, self.wide, self.low, {"stride": self.stride * words})
            self.done, self.next = self.done + lines, (slot + lines) % self.slots

    def spans(self, first: int, stop: int) -> list[Span]:
        """Where lines ``first`` to ``stop - 1`` are in X."""
        pixels = self.across * self.words
        starts = [self.target + column * self.plane + digit * self.low - self.first * pixels
                  for column in range(self.columns) for digit in range(self.wide.digits)]
        return [Span("X", start + first * pixels, start + stop * pixels) for start in starts]
