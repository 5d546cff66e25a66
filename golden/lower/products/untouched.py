"""Rows of a product that no term reaches: +0, and what the vector unit does with it."""

from math import prod

from ..boxes import boxes, joint
from ..builder import Builder
from ..memory import Value
from .after import After
from .matrix import store


def untouched(build: Builder, output: Value, after: After) -> None:
    """Rows (..., N) of an output: what steps, of which there is one at least, make of zeros."""
    *rows, (columns, _) = output.dims()
    words, last = -(-columns // build.lanes), len(rows)
    loops = joint([rows, rows, *after.loops(slice(None, -1))])
    many = prod(size for size, _ in loops[0])
    most = min(many, max(1, after.share // words))
    zeros = build.keep(most * words)
    build.fill(zeros.start, most * words)
    for start in range(0, many, most):
        count = min(most, many - start)
        box = list(boxes(loops, start, count))
        others = after.bring(box, count, words, 0)
        result = build.v.take(count * words, kept=True)
        after.work(result, others, count, words, zeros)
        for done, skips, lines in box:
            store(build, result.start + done * words, words, output, last, 0, skips[1], lines[1])
        build.v.release()
    build.forget()
