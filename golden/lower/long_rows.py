"""Programs of rows that are longer than the vector unit's: pass by pass, each over some words of a row at a time.

What a program keeps in registers lies in DRAM between passes, and scalars stay in the unit, so that rows come one after
the other. A maximum is that of the maxima of pieces. A sum has the bits that a longer unit would give: words are added
lane by lane, from the first to the last, and the lanes then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hbfp.golden.spec.vector import (
    NOTHING,
    Kind,
    Op,
    Reduce,
    Source,
    Target,
    VectorInstruction,
    constant,
    register,
    scalar,
)
from hbfp.golden.vector import programs

from . import vectors
from .builder import Builder
from .memory import Value

#: A scalar that no program of rows uses: the maximum of a piece.
_PIECE = 14


def divides(program: Sequence[VectorInstruction]) -> bool:
    """Whether a program can run pass by pass: each of its passes is over a whole row."""
    return all(each.kind in (Kind.SET, Kind.VECTOR, Kind.SCALAR) and not each.drop for each in program)


def long_rows(build: Builder, program: Sequence[VectorInstruction], sources: Sequence[Value], inner: int,
              outputs: Sequence[Value], kept: Mapping[int, Value]) -> None:
    """Run a program for each row along ``inner`` of values of one shape.

    ``kept`` has rows (K) for registers. An output whose size along ``inner`` is 1 gets the first number of each row.
    """
    shape = sources[0].shape
    once, each = vectors.split(program)
    long = {index: build.dram.empty((shape[inner],)) for index in {-1, *(one.target_index for one in each
                                                                         if one.target == Target.REGISTER)}}
    for place in np.ndindex(*(size for d, size in enumerate(shape) if d != inner)):
        at = (*place[:inner], slice(None), *place[inner:])
        _row(build, once, each, [Value(value.where[at], value.home) for value in sources],
             iter([Value(value.where[at], value.home) for value in outputs]), dict(kept), long)


def _row(build, once, program, sources, outputs, rows, long):
    """One row; ``long`` has space for what registers hold, and for what is added up alone."""
    streams = iter(sources)
    for each in program:
        if each.kind == Kind.SCALAR:
            vectors.one_pass(build, once, [each], 1, 1, [], [])
            continue
        names = list(dict.fromkeys(operand.index for operand in (each.a, each.b, each.c)
                                   if operand.source == Source.REGISTER))
        operands = [rows[name] for name in names]
        if Source.STREAM in (each.a.source, each.b.source, each.c.source):
            operands.append(next(streams))
        target = None
        if each.target == Target.STREAM:
            target = next(outputs)
        elif each.target == Target.REGISTER or each.reduce == Reduce.SUM:
            target = long[each.target_index if each.target == Target.REGISTER else -1]
        _pass(build, once, _alone(each, names, target), operands, target, sources[0].shape[0])
        if each.target == Target.REGISTER:
            rows[each.target_index] = target
        if each.reduce == Reduce.SUM:
            _sum(build, target, each.reduce_index)


def _alone(each, names, target):
    """A pass that takes the registers of these names as rows, in their order, and gives its own; sums come later."""
    where = {name: register(number) for number, name in enumerate(names)}
    own = {name: where[operand.index] for name in "abc" if (operand := getattr(each, name)).source == Source.REGISTER}
    last = replace(each, **own, target=Target.NONE if target is None else Target.STREAM, target_index=0)
    if each.reduce == Reduce.SUM:
        last = replace(last, reduce=Reduce.NONE, reduce_index=0)
    return [*(programs.vector(to=number) for number in range(len(names))), last]


def _pass(build, once, program, operands, target, length):
    """A pass over a row, some words at a time; of a target of one number the first of these alone."""
    lanes, most = build.lanes, build.accelerator.row_words
    length, last = length if target is None else target.shape[0], program[-1]
    for word in range(0, -(-length // lanes), most):
        own = program
        if last.reduce == Reduce.MAX and word:
            own = [*program[:-1], replace(last, reduce_index=_PIECE)]
        count = min(most * lanes, length)                  # of which there may be fewer left
        values = [Value(value.where[word * lanes:word * lanes + count], value.home) for value in operands]
        given = [] if target is None else [target.words(0, word, most, lanes)]
        vectors.by_rows(build, [*once, *own], values, [0], given)
        if last.reduce == Reduce.MAX and word:
            most_of = programs.single(scalar(last.reduce_index), scalar(_PIECE), op=Op.MAX, to=last.reduce_index)
            vectors.one_pass(build, [], [most_of], 1, 1, [], [])


def _sum(build, row, index):
    """Scalar ``index`` := the sum of a row that lies in DRAM, in the order of the lanes of a longer unit.

    A unit of fewer lanes than a word has numbers adds up parts of words: each lies in a word by itself.
    """
    lanes, total = build.accelerator.unit_lanes, build.accelerator.vector_rows - 1
    whole, rest = divmod(row.shape[0], lanes)
    begin, add = [programs.length(lanes)], [programs.vector(c=register(total), to=total)]
    vectors.one_pass(build, begin, [programs.vector(constant(NOTHING), to=total)], 1, 1, [], [])
    most = max(1, build.v.size // 4)
    for word in range(0, whole, most):
        count = min(most, whole - word)
        span = build.v.take(count)
        if lanes == build.lanes:
            build.load(Value(row.where[word * lanes:(word + count) * lanes], row.home), (), 0, span.start, count)
        else:
            build.fill(span.start, count, -0.0)
            build.gather(row.address + word * lanes, lanes, [(count, lanes, build.lanes)], span.start * build.lanes)
        vectors.one_pass(build, begin, add, count, 1, [span], [])
    if rest:
        span = build.v.take(1)
        build.fill(span.start, 1, -0.0)
        build.gather(row.address + whole * lanes, rest, [], span.start * build.lanes)
        vectors.one_pass(build, begin, add, 1, 1, [span], [])
    vectors.one_pass(build, begin, [programs.vector(register(total), sum=index)], 1, 1, [], [])
