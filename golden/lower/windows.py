"""Windows over images: pooling, and what is computed of whole images."""

from dataclasses import replace

from hbfp.golden.ops.operation import Windows
from hbfp.golden.vector import programs
from hbfp.isa.instructions import Opcode

from .boxes import ranges
from .builder import Builder
from .memory import Value
from .schedule import Span
from .vectors import BODY, slot, split

#: Words of small images that come together: enough that what an instruction costs besides them is little, and few
#: enough that the next ones come while it runs.
TOGETHER = 256


def taps_fit(taps: int) -> bool:
    """Whether windows of so many elements are one program."""
    return taps + 1 <= BODY


def pool(build: Builder, value: Value, output: Value, windows: Windows) -> None:
    """Windows over (N, C, H, W), channels innermost.

    Images that follow each other in DRAM are lines of one image where windows divide them without rest, and pixels of
    one line where each is one window. Where V does not hold one line of windows with all channels, as many channels as
    it holds are taken at a time.
    """
    n, c, h, w = value.shape
    oh, ow = output.shape[2:]
    words, wide = -(-c // build.lanes), w + 2 * windows.padding[1]
    fit = build.v.size // (_reach(windows) * wide + ow)
    if 0 < fit < words:
        for first in range(0, words, fit):
            part, own = (each.words(1, first, fit, build.lanes) for each in (value, output))
            pool(build, part, own, windows)
        return
    most = build.v.size // 2
    if n > 1 and (windows.size, windows.padding, windows.dilation, oh, ow) == ((h, w), (0, 0), (1, 1), 1, 1):
        if seen := _seen((value, output), lambda where: where.permute(1, 0, 2, 3).reshape(1, c, 1, -1)):
            line = replace(windows, size=(1, h * w), stride=(1, h * w))
            for first, count in ranges([n], max(1, min(TOGETHER, most // 2) // (words * h * w))):
                _bands(build, [Value(each.where[..., first * size:(first + count) * size], each.home)
                               for each, size in zip(seen, (h * w, 1), strict=True)], line, most)
            return
    if n > 1 and windows.padding[0] == 0 and oh * windows.stride[0] == h:
        if seen := _seen((value, output), lambda where: where.permute(1, 0, 2, 3).reshape(1, c, -1, where.shape[3])):
            _bands(build, seen, windows, min(max(TOGETHER, h * wide * words), most))
            return
    for image in range(n):
        _bands(build, [Value(each.where[image:image + 1], each.home) for each in (value, output)], windows, most)


def _seen(values, function):
    """The views that a function makes of values; None where torch would have to copy one for it."""
    seen = [each.seen(function) for each in values]
    return None if None in seen else seen


def _reach(windows):
    """Lines from a window's first to its last."""
    return windows.dilation[0] * (windows.size[0] - 1) + 1


def _bands(build, values, windows, most):
    """Windows over one image, the first of two values, into the other, some lines of them at a time; those take at most
    so many words of V, if they can.
    """
    value, output = values
    _, c, h, w = value.shape
    oh, ow = output.shape[2:]
    (ph, pw), sh, reach, border = windows.padding, windows.stride[0], _reach(windows), windows.border
    words, wide = -(-c // build.lanes), w + 2 * pw
    dims, own = value.dims(), output.dims()
    band = min(max(1, (most // words - (reach - sh) * wide) // (sh * wide + ow)), oh)
    for top in range(0, oh, band):
        rows = min(band, oh - top)
        tall, start = (rows - 1) * sh + reach, top * sh - ph
        first, last = max(start, 0), min(start + tall, h)
        span = build.v.take(tall * wide * words, kept=True)
        if pw:
            for side in (0, pw + w):
                build.fill(span.start + side * words, pw * words, border, tall, wide * words)
        for line, many in ((0, first - start), (last - start, start + tall - last)):
            if many > 0:
                build.fill(span.start + line * wide * words, many * wide * words, border)
        at, skip = span.start + ((first - start) * wide + pw) * words, first * dims[2][1]
        if pw:
            for y in range(first, last):
                build.load(value, (), 1, at + (y - first) * wide * words, words,
                           skip=skip + (y - first) * dims[2][1], rows=[dims[3]])
        elif last > first:
            build.load(value, (), 1, at, words, skip=skip, rows=[(last - first, dims[2][1]), dims[3]])
        result = build.v.take(rows * ow * words)
        in_v(build, windows, c, (rows, ow), span, result, wide)
        build.store(result.start, words, output, (), 1, skip=top * own[2][1], rows=[(rows, own[2][1]), own[3]])
        build.v.release()


def in_v(build: Builder, windows: Windows, channels: int, shape: tuple[int, int], source: Span, result: Span,
         wide: int) -> None:
    """Windows of lines of ``wide`` pixels in V, of which there are as many down and across as ``shape`` says.

    Rows of the vector unit are several windows, across or down, if their words fit.
    """
    (rows, across), (_, kw), (sh, sw), (dh, dw) = shape, windows.size, windows.stride, windows.dilation
    once, each = split(windows.program)
    words, longest = -(-channels // build.lanes), build.accelerator.row_words
    # So many windows; words from one to the next, and from a result to the next.
    ways = [(across, sw * words, words), (rows, sh * wide * words, across * words)]
    (many, *inner), (other, *outer) = sorted(ways, key=lambda way: -min(way[0], longest // words))
    beside = max(1, min(longest // words, many))
    if channels % build.lanes and windows.border and (dh, dw) != (1, 1):
        beside = 1                     # a window of borders alone: what fills up its pixel's words is no zero
    for word in range(0, words, longest):
        part = min(longest, words - word)
        for x, count, several in ((0, many // beside, beside), (many // beside * beside, 1, many % beside)):
            if not several:
                continue
            length = min(channels - word * build.lanes, part * build.lanes) + (several - 1) * part * build.lanes
            before = [*once, programs.length(length)]
            place = build.program([*before, *each])
            values = {"program": place.start, "before": len(before), "body": len(each), "count0": count,
                      "count1": other, "taps": 1, "i1_inner": kw, "i1_step": dw * words,
                      "i1_stride0": dh * wide * words}
            for name, span, step, far in zip(("i0", "o0"), (source, result), inner, outer, strict=True):
                values |= slot(name, span.start + x * step + word, part, several * step, far)
                values[f"{name}_step"] = step
            build.schedule.emit(Opcode.VECTOR, values, [place, source], [result])
