"""Layers of the vector unit: element by element, and row by row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hbfp.golden.spec.vector import STREAM, Kind, Reduce, VectorInstruction, VectorUnit, scalar
from hbfp.golden.vector import programs
from hbfp.golden.vector.pairs import by_itself, paired
from hbfp.golden.vector.side import registers
from hbfp.isa.instructions import VECTOR_INPUTS, VECTOR_OUTPUTS, Opcode

from .boxes import boxes, joint, ranges
from .builder import Builder
from .errors import LoweringError
from .memory import Value
from .schedule import Span

#: Most instructions of the vector unit in the body of one VECTOR.
BODY = 255
#: The scalar register that no program of an operation uses.
SPARE = 15
#: A program for each row, or what gives one for rows from that of a number on.
OfRows = Sequence[VectorInstruction] | Callable[[int], Sequence[VectorInstruction]]


def split(program: Sequence[VectorInstruction]) -> tuple[list[VectorInstruction], list[VectorInstruction]]:
    """A program's constants, which are set once, and the rest, which runs for every row."""
    fixed = Kind.SET, Kind.ARGUMENT, Kind.KEY, Kind.PLACE
    return ([each for each in program if each.kind in fixed], [each for each in program if each.kind not in fixed])


def slot(name: str, base: int, words: int, row: int, outer: int = 0) -> dict[str, int]:
    """Fields of a slot of whole rows."""
    return {f"{name}_base": base, f"{name}_inner": words % 256, f"{name}_stride0": row, f"{name}_stride1": outer}


def run(build: Builder, program: Sequence[VectorInstruction], length: int, rows: int, words: int,
        inputs: Sequence[Span], outputs: Sequence[Span], whole: Span | None = None) -> None:
    """Run a program over ``rows`` rows of ``length`` elements, ``words`` words each, which follow each other in V.

    With ``whole`` any of this span may be what is read and written, besides. A program that waits for sums of a row
    runs for several rows in a pass, and for two such passes or two rows in turns, where it can.
    """
    once, each = split(program)
    most = build.accelerator.short_rows if words == 1 and whole is None and by_itself(each) else 0
    if most and rows > 1:
        if (pairs := _halves(build, each, rows, most)) is not None:
            half = rows // 2
            taken, given = ([part for span in spans for part in (span, _from(span, half))]
                            for spans in (inputs, outputs))
            one_pass(build, [*once, programs.length(length, half)], pairs, 1, half, taken, given)
            return
        beside = -(-rows // -(-rows // most))
        for first, count, width in ((0, rows // beside, beside), (rows // beside * beside, 1, rows % beside)):
            if width:
                taken, given = ([_from(span, first) for span in spans] for spans in (inputs, outputs))
                one_pass(build, [*once, programs.length(length, width if width > 1 else 0)], each, count, width, taken,
                         given)
        return
    once = [*once, programs.length(length)]
    pairs = paired(each, VectorUnit.of(build.accelerator), length, SPARE) if rows > 1 and whole is None else None
    if pairs:
        taken, given = ([part for span in spans for part in (span, _from(span, words))] for spans in (inputs, outputs))
        one_pass(build, once, pairs, rows // 2, words, taken, given, apart=2)
        if rows % 2:
            taken, given = ([_from(span, (rows - 1) * words) for span in spans] for spans in (inputs, outputs))
            one_pass(build, once, each, 1, words, taken, given)
        return
    one_pass(build, once, each, rows, words, inputs, outputs, [whole] if whole else [])


def _halves(build, each, rows, most):
    """A program for half of the rows, and one for the others, whose instructions take turns; None if none gains."""
    if rows % 2 or not 2 < rows <= 2 * most:
        return None
    return paired(each, VectorUnit.of(build.accelerator), rows // 2 * build.lanes, SPARE)


def _from(span, words):
    """A span without its first words."""
    return Span(span.memory, span.start + words, span.stop)


def one_pass(build: Builder, once: Sequence[VectorInstruction], each: Sequence[VectorInstruction], rows: int,
             words: int, inputs: Sequence[Span], outputs: Sequence[Span], whole: Sequence[Span] = (),
             apart: int = 1) -> None:
    """An instruction: what runs once, and what runs for each of rows in V of which each stands ``apart`` behind."""
    used, there = registers([*once, *each]), build.accelerator.vector_rows
    if used > there:
        raise LoweringError(f"its program keeps {used} rows in the vector unit, which has {there}; --vector-rows "
                            f"{used} would do")
    place = build.program([*once, *each])
    values = {"program": place.start, "before": len(once), "body": len(each), "count0": rows, "count1": 1}
    for name, span in (*zip(VECTOR_INPUTS, inputs, strict=False), *zip(VECTOR_OUTPUTS, outputs, strict=False)):
        values |= slot(name, span.start, words, apart * words)
    build.schedule.emit(Opcode.VECTOR, values, [place, *inputs, *whole], [*outputs, *whole])


def physical(value: Value) -> list[int]:
    """The dimensions of a value, outermost first, as they lie in DRAM; numbers that lie apart are rows of one."""
    dims = value.dims()
    order = sorted(range(len(dims)), key=lambda d: (-dims[d][1], d) if dims[d][0] > 1 else (-1 << 60, d))
    single = [d for d in order if dims[d][0] == 1]
    if single and len(single) < len(order) and dims[order[-1]][1] != 1:
        order.append(order.pop(len(single) - 1))
    return order


def by_rows(build: Builder, program: OfRows, operands: Sequence[Value], order: Sequence[int], outputs: Sequence[Value],
            flat: bool = False, kept: Mapping[int, Value] | None = None) -> None:
    """Run a program over all rows of operands of one shape; the last of ``order`` is the dimension along a row.

    With ``flat`` the program does each element by itself and makes zeros of zeros; rows are as long as they can be.
    ``kept`` are rows for registers, the same for all.
    """
    values, taken = (*operands, *outputs), range(len(operands))
    given = range(len(operands), len(values))
    in_rows(build, [(program, taken, given)], values, order, taken, given, flat, kept)


def in_rows(build: Builder, parts: Sequence[tuple[OfRows, Sequence[int], Sequence[int]]],
            values: Sequence[Value], order: Sequence[int], loaded: Iterable[int],
            stored: Iterable[int] | Mapping[int, Value],
            flat: bool = False, kept: Mapping[int, Value] | None = None) -> None:
    """Run programs, one after the other, over all rows of values of one shape; ``order`` and ``flat`` as above. Of rows
    that are longer than the vector unit's, of which each element is by itself, some words of all are done at a time.

    Each part is a program, and the numbers of the values that it takes and gives, which may be the same. Those that are
    ``loaded`` come from DRAM before the first, those that are ``stored`` go there behind the last, where they came from
    or to values of the same strides.
    """
    *outer, inner = order
    length = values[0].shape[inner]                        # of an output the first of them may be all
    words = -(-length // build.lanes)
    most = build.accelerator.row_words
    if words > most and not flat and all(_by_elements(program) for program, *_ in parts):
        for word in range(0, words, most):
            some = [each.words(inner, word, most, build.lanes) for each in values]
            targets = {number: each.words(inner, word, most, build.lanes) for number, each in stored.items()
                       } if isinstance(stored, Mapping) else stored
            rows = {number: each.words(0, word, most, build.lanes) for number, each in (kept or {}).items()}
            in_rows(build, parts, some, order, loaded, targets, flat, rows)
        return
    if kept:
        keep_rows(build, kept, build.accelerator.row_words // words if flat else 0)
    most = max(1, build.v.size // (2 * len(values)) // words)
    every = joint([[value.dims()[d] for d in outer] for value in values])
    for first, count in ranges([size for size, _ in every[0]], most):
        with loaded_rows(build, list(boxes(every, first, count)), count, words, inner, values, loaded, stored) as spans:
            for program, *places in parts:
                own = program(first) if callable(program) else program
                taken, given = ([spans[number] for number in numbers] for numbers in places)
                if flat:
                    elementwise(build, own, count * words, taken, given, words if kept else 1)
                else:
                    run(build, own, length, count, words, taken, given)


def _by_elements(program):
    """Whether a program does each element of a row by itself, wherever it stands in it."""
    return not callable(program) and all(each.reduce == Reduce.NONE and each.kind not in (Kind.KEY, Kind.PLACE)
                                         for each in program)


@contextmanager
def loaded_rows(build: Builder, cut: Sequence[Any], count: int, words: int, inner: int, values: Sequence[Value],
                loaded: Iterable[int], stored: Iterable[int] | Mapping[int, Value]) -> Iterator[list[Span]]:
    """Where rows of values are in V, brought there, or stored at the end, by their numbers; ``cut`` are boxes."""
    def bring(target, number):
        for done, skips, lines in cut:
            build.load(values[number], (), inner, target + done * words, words, skip=skips[number], rows=lines[number])
    brought = set(loaded)
    spans = build.several(count * words, [partial(bring, number=number) if number in brought else None
                                          for number in range(len(values))])
    yield spans
    targets = stored if isinstance(stored, Mapping) else {number: values[number] for number in stored}
    for number, target in targets.items():
        for done, skips, lines in cut:
            build.store(spans[number].start + done * words, words, target, (), inner, skip=skips[number],
                        rows=lines[number])
    build.v.release()


def keep_rows(build: Builder, kept: Mapping[int, Value], beside: int = 0) -> None:
    """Put rows (K) into registers of the vector unit; with ``beside`` so many times one behind the other, filled up
    to whole words each.
    """
    for index, value in kept.items():
        length = value.shape[0]
        words = -(-length // build.lanes)
        several = max(1, beside) * words
        def bring(target, value=value, words=words):
            build.load(value, (), 0, target, words, rows=[(max(1, beside), 0)])
        span = build.brought(several, bring)
        run(build, programs.load_row(index), several * build.lanes if beside else length, 1, several, [span], [])


def number(build: Builder, value: Value, index: int) -> None:
    """Put the one number of a tensor into a scalar of the vector unit, as the sum of a row of that number alone."""
    numbers(build, [value], [index])


def numbers(build: Builder, values: Sequence[Value], indices: Sequence[int]) -> None:
    """The same for up to three tensors of one number, and as many scalars."""
    spans = [build.v.take(1) for _ in values]
    for value, span in zip(values, spans, strict=True):
        build.gather(value.address, 1, [], span.start * build.lanes)
    one_pass(build, [programs.length(1), *(programs.vector(sum=index) for index in indices)], [], 1, 1, spans, [])


def with_scalar(program: Sequence[VectorInstruction], place: int, index: int) -> list[VectorInstruction]:
    """A program with scalar ``index`` in place of row ``place``, from 0, of those that it takes from its inputs."""
    found, taken = [], -1
    for each in program:
        reads = any(getattr(each, name) == STREAM for name in "abc")
        taken += reads
        stands: dict[str, Any] = {name: scalar(index) for name in "abc"
                                  if reads and taken == place and getattr(each, name) == STREAM}
        found.append(replace(each, **stands))
    return found


def copy(build: Builder, value: Value, output: Value) -> None:
    """Copy a tensor into another of its shape; rows are those of the output."""
    dims = len(value.shape)
    order = physical(output) if dims else []
    *outer, inner = order or [0]
    if not dims:
        value, output = (Value(each.where[None], each.home) for each in (value, output))
    words = -(-output.shape[inner] // build.lanes)
    every = joint([[each.dims()[d] for d in outer] for each in (value, output)])
    for first, count in ranges([size for size, _ in every[0]], max(1, build.v.size // 4 // words)):
        cut = list(boxes(every, first, count))

        def bring(target, cut=cut):
            for done, skips, lines in cut:
                build.load(value, (), inner, target + done * words, words, skip=skips[0], rows=lines[0])
        span = build.brought(count * words, bring)
        for done, skips, lines in cut:
            build.store(span.start + done * words, words, output, (), inner, skip=skips[1], rows=lines[1])


def elementwise(build: Builder, program: Sequence[VectorInstruction], words: int, inputs: Sequence[Span],
                outputs: Sequence[Span], unit: int = 1) -> None:
    """Run a program of each element by itself: words make rows of the longest length, and the rest makes one more.

    Rows are multiples of ``unit`` words, of which one fits.
    """
    long = min(words, build.accelerator.row_words // unit * unit)
    for start, rows, size in ((0, words // long, long), (words // long * long, 1, words % long)):
        if size:
            parts = [Span("V", span.start + start, span.start + start + rows * size) for span in (*inputs, *outputs)]
            run(build, program, size * build.lanes, rows, size, parts[:len(inputs)], parts[len(inputs):])


def constant_rows(build: Builder, rows: Sequence[np.ndarray | Value], first: int = 1) -> None:
    """Put rows, numbers or where they lie, into the vector unit's registers ``first``, ``first + 1`` and so on."""
    length, = rows[0].shape
    words = -(-length // build.lanes)
    for number, row in enumerate(rows, first):
        span = build.v.take(words)
        build.load(row if isinstance(row, Value) else build.dram.constant(row), (), 0, span.start, words)
        run(build, programs.load_row(number), length, 1, words, [span], [])
