"""A rectangle of a convolution's pixels: what goes before a command for it, and behind."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..boxes import Loops
from ..builder import Builder
from ..memory import Value
from ..schedule import Span
from .after import After
from .matrix import store


@contextmanager
def rectangle(build: Builder, after: After, output: Value, dims: Sequence[Loops], at: Sequence[int],
              size: tuple[int, int], columns: tuple[int, int]) -> Iterator[Span]:
    """Words of V for what a command gives, which is emitted meanwhile: steps follow it, and the way to DRAM.

    Parameters
    ----------
    build, after
    output : Value
        Images (N, OH, OW, O).
    dims : sequence of Loops
        Of it, and of the other tensors of ``after``.
    at : (int, int, int)
        Image, and first pixel down and across.
    size : (int, int)
        Pixels down and across.
    columns : (int, int)
        First column tile, and how many.
    """
    (image, y, x), (tall, across), (first, some) = at, size, columns
    loops = [[(tall, each[1][1]), (across, each[2][1])] for each in dims]
    skips = [image * each[0][1] + y * each[1][1] + x * each[2][1] for each in dims]
    extra = after.bring([(0, [0, *skips], [[], *loops])], tall * across, some, first)
    result = build.v.take(tall * across * some, kept=True)
    yield result
    after.work(result, extra, tall * across, some)
    store(build, result.start, some, output, 3, first, skips[0], loops[0])
    build.v.release()
