"""Convolutions whose patches are addresses: X holds pixels."""

from collections.abc import Sequence
from itertools import product

from ..builder import Builder
from ..errors import LoweringError
from ..memory import Value
from .after import After
from .core import Core
from .draw import Pixels
from .matrix import PASS, store, to_x
from .passes import even
from .weights import Steps, Weights


def convolution(build: Builder, value: Value, weights: Weights, steps: Steps, output: Value, size: Sequence[int],
                stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], after: After,
                drawn: Pixels | None = None) -> None:
    """Patches by address, of (N, C, H, W) whose blocks lie within the channels of a pixel: (N, O, OH, OW).

    What patches reach behind images is zeros, and so are ``padding`` lines and columns in front of them, of which a
    number below 0 takes so many away. ``drawn`` is how images are rounded, if not to nearest.
    """
    core, machine = Core(build, weights, steps), build.accelerator
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = size, stride, padding, dilation
    n, c, h, w = value.shape
    oh, ow = output.shape[2:]
    words, each, wide = -(-c // build.lanes), -(-c // machine.whole), weights.wide
    cells, passes = each * machine.whole // machine.piece, each * machine.whole // machine.core.rows    # of a pixel
    flat = Value(output.where.permute(0, 2, 3, 1), output.home)
    dims, every = value.dims(), [each.dims() for each in (flat, *after.others)]
    margin = (max(ph, 0) * w + max(pw, 0)) * cells
    reach, long_reach = dh * (kh - 1) + 1, dw * (kw - 1) + 1
    beyond = ph > 0 or pw > 0 or (oh - 1) * sh - ph + reach > h or (ow - 1) * sw - pw + long_reach > w

    def space(band):
        return (min((band - 1) * sh + reach, h) * w * cells + margin) * wide.digits
    fits = [b for b in range(1, oh + 1) if space(b) <= build.x.size]
    good = [b for b in fits if b == oh and n == 1 or 2 * space(b) <= build.x.size]
    if not fits:
        least, there = (size // machine.row_pieces for size in (space(1), build.x.size))
        raise LoweringError(f"rows of {w} pixels of {c} channels, {reach} of them, need {least} words of memory X, not "
                            f"{there}; --x-words {1 << (least - 1).bit_length()} would do")
    band = max(good or fits)
    usual = machine.core.depth if core.plan.streamed else PASS * machine.core.rows
    most = max(1, min(machine.core.depth, after.share // core.plan.group, usual))
    across = even(ow, most)
    for image in range(n):
        for top in range(0, oh, band):
            rows = min(band, oh - top)
            first = min(max(top * sh - ph, 0), h)
            last = max(min((top + rows - 1) * sh - ph + reach, h), first)
            low = (last - first) * w * cells + margin      # of wide pixels, low digits behind all high ones
            span = build.x.take(low * wide.digits)
            base = span.start + margin
            _pixels(build, value, dims, image, first, last, words, base, cells, wide, low, drawn)
            for start, some in core.groups():
                where, there = core.place(start, some)
                if not there and where is not None:
                    core.bring(where, start, some)
                down = even(rows, max(1, most // ow)) if across == ow else 1
                for y, x in product(range(top, top + rows, down), range(0, ow, across)):
                    tall_, long = min(down, top + rows - y), min(across, ow - x)
                    lines = [[(tall_, each[1][1]), (long, each[2][1])] for each in every]
                    skips = [image * each[0][1] + y * each[1][1] + x * each[2][1] for each in every]
                    extra = after.bring([(0, [0, *skips], [[], *lines])], tall_ * long, some, start)
                    result = build.v.take(tall_ * long * some, kept=True)
                    at = base + ((y * sh - ph - first) * w + x * sw - pw) * cells
                    bounded = {"bounded": 1, "x": x * sw - pw, "y": y * sh - ph, "x_row": sw, "y_row": sh,
                               "x_pass": dw, "y_pass": dh, "width": w, "height": h} if beyond else {}
                    core.multiply(span, {
                        "base": at, "rows0": long, "rows1": tall_, "row0": sw * cells, "row1": sh * w * cells,
                        "passes0": passes, "passes1": kw, "passes2": kh, "pass0": machine.row_pieces,
                        "pass1": dw * cells, "pass2": dh * w * cells, **bounded, **wide.multiply(low)},
                        where, some, result, some, start)
                    after.work(result, extra, tall_ * long, some)
                    store(build, result.start, some, flat, 3, start, skips[0], lines[0])
                    build.v.release()


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
