"""Copies in which the words of each column tile lie side by side, for products that take a column tile at a time.

Rows come as they lie, and so in long bursts; the vector unit puts their words in the other order in V, and what is
stored are long bursts again. A word by itself, loaded or stored, takes more than four cycles.
"""

from collections.abc import Callable

import torch

from hbfp.golden.vector import programs
from hbfp.isa.instructions import Opcode

from . import vectors
from .boxes import boxes, joint, ranges
from .builder import Builder
from .memory import Value
from .schedule import Span

#: Cycles that a word by itself takes to come from DRAM: those of a read, by the reads in flight.
WORD = 4


def set_apart(build: Builder, value: Value, stride: int, place: Callable[[int, int], Value]) -> None:
    """Copy images (N, C, H, W), word by word of C.

    ``place(word, first)`` is where (N, H, pixels, lanes) of a word go, of the pixels ``first``, ``first + stride`` and
    so on of each line: side by side, and so for all words and first pixels alike.
    """
    lanes, (_, channels, _, wide) = build.lanes, value.shape
    tiles, across = channels // lanes, wide // stride
    if wide % stride or not value.whole_words(1, lanes) or 4 * tiles * wide > build.v.size \
            or build.accelerator.core.format.subnormals != "flush":
        for word in range(tiles):
            for first in range(min(stride, wide)):
                own = value.where[:, word * lanes:(word + 1) * lanes, :, first::stride]
                target = place(word, first)
                vectors.copy(build, Value(own, value.home), target.view(torch.permute, (0, 3, 1, 2)))
        return
    (images, image), _, (high, line), pixel = value.dims()
    lines = joint([[(images, image), (high, line)], place(0, 0).dims()[:2]])
    for start, count in ranges([size for size, _ in lines[0]], build.v.size // 4 // (tiles * wide)):
        cut = list(boxes(lines, start, count))

        def bring(target, cut=cut):
            for done, skips, loops in cut:
                build.load(value, (), 1, target + done * wide * tiles, tiles, skip=skips[0], rows=[*loops[0], pixel])
        source, result = build.several(count * wide * tiles, [bring, None])
        for first in range(stride):
            into = result.start + first * tiles * count * across
            _in_order(build, source, first * tiles, stride * tiles, tiles, count * across, into)
            for word in range(tiles):
                rows = place(word, first).view(torch.flatten, -2)
                for done, skips, loops in cut:
                    build.store(into + (word * count + done) * across, across, rows, (), 2, skip=skips[1],
                                rows=loops[1])
        build.v.release()


def _in_order(build, source, first, step, tiles, count, target):
    """Of ``count`` pixels that lie ``step`` words apart their first words, then their second ones, and so on."""
    longest = build.accelerator.row_words
    body = programs.activation()
    for start, rows, words in ((0, count // longest, longest), (count // longest * longest, 1, count % longest)):
        if rows and words:
            before = [programs.length(words * build.lanes)]
            place = build.program([*before, *body])
            build.schedule.emit(Opcode.VECTOR, {
                "program": place.start, "before": len(before), "body": len(body), "count0": rows, "count1": tiles,
                "i0_base": source.start + first + start * step, "i0_inner": 1, "i0_step": step,
                "i0_stride0": words * step, "i0_stride1": 1,
                **vectors.slot("o0", target + start, words, words, count)},
                [place, source], [Span("V", target, target + tiles * count)])
