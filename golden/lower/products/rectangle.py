"""A rectangle of a convolution's pixels: what goes before a command for it, and behind."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..boxes import Loops
from ..builder import Builder
from ..memory import Value
from ..schedule import Span
from ..windows import in_v
from .after import After
from .matrix import store


@contextmanager
def rectangle(build: Builder, after: After, output: Value, dims: Sequence[Loops], at: Sequence[int],
              size: tuple[int, int], columns: tuple[int, int], images: int = 1) -> Iterator[Span]:
    """Words of V for what a command gives, which is emitted meanwhile: steps follow it, windows, and the way to DRAM.

    Parameters
    ----------
    build, after
    output : Value
        Images (N, OH, OW, O), or what windows give of them.
    dims : sequence of Loops
        Of it, and of the other tensors of ``after``.
    at : (int, int, int)
        The first image, and pixel down and across.
    size : (int, int)
        Pixels down and across; of both, whole windows.
    columns : (int, int)
        First column tile, and how many.
    images : int
        Of several images, which follow each other, a line stands beside the next one's.
    """
    (image, y, x), (tall, across), (first, some) = at, size, columns
    steps = [after.step, *((1, 1) for _ in dims[1:])]
    loops = [[(tall // down, each[1][1]), (images, each[0][1]), (across // right, each[2][1])]
             for each, (down, right) in zip(dims, steps, strict=True)]
    skips = [image * each[0][1] + y // down * each[1][1] + x // right * each[2][1]
             for each, (down, right) in zip(dims, steps, strict=True)]
    pixels = tall * images * across
    extra = after.bring([(0, [0, *skips], [[], *loops])], pixels, some, first)
    result = build.v.take(pixels * some, kept=True)
    yield result
    after.work(result, extra, pixels, some)
    if after.windows is not None:
        channels = min(some * build.lanes, output.shape[3] - first * build.lanes)
        source, shape = result, (tall // steps[0][0], images * across // steps[0][1])
        result = build.v.take(shape[0] * shape[1] * some)
        in_v(build, after.windows, channels, shape, source, result, images * across)
    store(build, result.start, some, output, 3, first, skips[0], loops[0])
    build.v.release()
