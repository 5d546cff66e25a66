"""Convolutions whose patches are gathered into rows in V."""

from collections.abc import Sequence

from ..builder import Builder
from ..memory import Value
from .after import After
from .core import Core
from .matrix import by_bands
from .weights import Steps, Weights


def gathered(build: Builder, value: Value, weights: Weights, steps: Steps, output: Value, size: Sequence[int],
             stride: Sequence[int], dilation: Sequence[int], after: After) -> None:
    """Patches as rows in V: of (N, C, H, W), dense with its borders, channels innermost: (N, O, OH, OW)."""
    (kh, kw), (sh, sw), (dh, dw) = size, stride, dilation
    c = value.shape[1]
    dims, own = value.dims(), output.dims()
    n, _, oh, ow = output.shape
    (_, image), (_, channel), (_, line), (_, pixel) = dims
    beside = kw if channel == 1 and pixel == c and dw == 1 else 1    # taps whose channels follow each other
    if beside > 1:
        run, taps = kw * c, [(kh, dh * line, kw * c)]
    else:
        run, taps = c, [(kw, dw * pixel, c), (kh, dh * line, kw * c)]
    assert channel == 1 or c == 1
    lanes, in_words = build.lanes, c % build.lanes == 0 and value.whole_words(1, build.lanes)
    loops = [[(n, image), (oh, sh * line), (ow, sw * pixel)], [own[0], own[2], own[3]],
             *after.loops(slice(None, -1))]

    def load(skip, lines, target, first, words):
        del first
        every, step = list(taps), words * lanes
        for number, distance in reversed(lines):
            every.append((number, distance, step))
            step *= number
        every = [loop for loop in every if loop[0] > 1]
        if in_words:                                       # long bursts
            build.words(value.address + skip, run // lanes, [(n, far, own // lanes) for n, far, own in every], target)
        else:
            build.gather(value.address + skip, run, every, target * lanes)
    core = Core(build, weights, steps)
    flat = Value(output.where.permute(0, 2, 3, 1), output.home)
    by_bands(build, loops, load, core, flat, after, whole=True,
             zeros=kh * kw * c % (core.plan.words * lanes) > 0)
