"""Sums of rows over dimensions, as of a bias's gradient: of one value, or of the models of a job side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hbfp.golden.spec.vector import Kind, Reduce, VectorInstruction
from hbfp.golden.vector import programs
from hbfp.isa.instructions import VECTOR_INPUTS, Opcode

from .boxes import boxes, joint, ranges
from .builder import Builder
from .memory import Value
from .vectors import keep_rows, loaded_rows, one_pass, split


def sums(build: Builder, parts: Sequence[Sequence[VectorInstruction]], operands: Sequence[Value], over: Sequence[int],
         inner: int, outputs: Sequence[Value], totals: Sequence[Value], kept: Mapping[int, Value] | None = None
         ) -> None:
    """Add up rows along ``inner`` of operands of one shape over dimensions, the last of them fastest, to one row each.

    ``parts`` are the programs of :func:`golden.ops.results.running`: before the rows, for each row, and after them. The
    second gives the rows of ``outputs``, the last those of ``totals``. ``kept`` are rows for registers, the same for
    all. In a job, models that add up alike at the same time do it together.
    """
    short = build.accelerator.short_rows and operands[0].shape[inner] <= build.lanes and _only_passes(parts[1])
    if build.waiting is not None and not (outputs or kept) and (short or not _reduces(parts)):
        build.waiting.append(Sum(parts, operands, over, inner, totals))
        return
    before, body, after = parts
    once, each = split(body)
    values, read = (*operands, *outputs), len(operands)
    every = joint([[value.dims()[d] for d in over] for value in values])
    for words, part in _columns(build, operands[0].shape[inner]):
        own, sums_ = [part(value, inner) for value in values], [part(value, inner) for value in totals]
        length = own[0].shape[inner]
        keep_rows(build, {index: part(value, 0) for index, value in (kept or {}).items()})
        begin = [*once, programs.length(length), *before]
        for first, count in ranges([size for size, _ in every[0]], max(1, build.v.size // (2 * len(values)) // words)):
            with loaded_rows(build, list(boxes(every, first, count)), count, words, inner, own, range(read),
                             range(read, len(values))) as spans:
                one_pass(build, [] if first else begin, each, count, words, spans[:read], spans[read:])
        for one, total in zip(after, sums_, strict=True):
            result = build.v.take(words)
            one_pass(build, [], [one], 1, words, [], [result])
            build.store(result.start, words, total, (), inner, rows=[])


def _reduces(parts):
    """Whether rows are added up along themselves, besides."""
    return any(each.reduce != Reduce.NONE for part in parts for each in part)


def _only_passes(program):
    """Whether a program may run for several rows in each pass: it sets no length, and drops nothing."""
    return all(each.kind in (Kind.VECTOR, Kind.SCALAR) and not each.drop for each in split(program)[1])


def _columns(build, length):
    """Of rows that are longer than the vector unit's, the words that are added up at a time, and what gives these
    columns of a value along a dimension.
    """
    longest, wide = build.accelerator.row_words, -(-length // build.lanes)
    for word in range(0, wide, longest):
        words = min(longest, wide - word)

        def part(value, along, word=word, words=words):
            return value if wide <= longest else value.words(along, word, words, build.lanes)
        yield words, part


@dataclass
class Sum:
    """What :func:`sums` is to do without ``outputs``, and does later."""
    parts: Sequence[Sequence[VectorInstruction]]
    operands: Sequence[Value]
    over: Sequence[int]
    inner: int
    totals: Sequence[Value]
    name: str = ""

    @property
    def kind(self) -> Any:
        """What sums have in common that can be done together."""
        return (self.name, [[each.encode() for each in part] for part in self.parts],
                [each.shape for each in self.operands], self.over, self.inner)

    @staticmethod
    def together(build: Builder, several: Sequence["Sum"]) -> None:
        """Do sums of one kind: :func:`together`."""
        together(build, several)


def together(build: Builder, several: Sequence[Sum]) -> None:
    """Do sums of one kind, as many at a time as a row has words for: theirs lie in it side by side.

    Each addition waits for the one before it, so that a row of many words takes hardly longer than one of few. A row
    is as long as its words, and lanes behind the end of a sum's own are stored nowhere. Rows that are also added up
    along themselves are several rows of a pass.
    """
    one = several[0]
    for words, part in _columns(build, one.operands[0].shape[one.inner]):
        own = [replace(each, operands=[part(value, each.inner) for value in each.operands],
                       totals=[part(value, each.inner) for value in each.totals]) for each in several]
        wide = build.accelerator.short_rows if _reduces(one.parts) else build.accelerator.row_words // words
        most = min(wide, build.v.size // (4 * len(one.operands) * words))
        for first in range(0, len(own), max(1, most)):
            _side_by_side(build, own[first:first + max(1, most)], words)


def _side_by_side(build, several, words):
    before, body, after = several[0].parts
    once, each = split(body)
    width = words * len(several)
    inner, over = several[0].inner, several[0].over
    size = [width * build.lanes]
    if _reduces(several[0].parts):
        size = [several[0].operands[0].shape[inner], width if width > 1 else 0]
    begin = [*once, programs.length(*size), *before]
    every = [joint([[value.dims()[d] for d in over] for value in one.operands]) for one in several]
    for first, count in ranges([size for size, _ in every[0][0]],
                               max(1, build.v.size // (2 * len(several[0].operands)) // width)):
        def bring(target, place, one, loops, first=first, count=count):
            for done, skips, lines in boxes(loops, first, count):
                build.load(one.operands[place], (), inner, target + done * words, words, skip=skips[place],
                           rows=lines[place])
        spread = build.spread(count * words, [[partial(bring, place=place, one=one, loops=loops)
                                               for one, loops in zip(several, every, strict=True)]
                                              for place in range(len(several[0].operands))])
        place = build.program([*([] if first else begin), *each])
        values = {"program": place.start, "before": 0 if first else len(begin), "body": len(each), "count0": count,
                  "count1": 1}
        for name, (spans, step) in zip(VECTOR_INPUTS, spread, strict=False):
            values |= {f"{name}_base": spans[0].start, f"{name}_inner": words, f"{name}_step": step,
                       f"{name}_stride0": words}
        build.schedule.emit(Opcode.VECTOR, values, [place, *(span for spans, _ in spread for span in spans)], [])
        build.v.release()
    for number, total in enumerate(after):
        result = build.v.take(width)
        one_pass(build, [], [total], 1, width, [], [result])
        for place, one in enumerate(several):
            build.store(result.start + place * words, words, one.totals[number], (), inner, rows=[])
