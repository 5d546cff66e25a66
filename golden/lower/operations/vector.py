"""Operations of the vector unit: layers of the forms that :mod:`golden.ops` has for them."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from hbfp.golden.nn.forms import patterns
from hbfp.golden.ops.operation import Elements, Program, Rows, Windows, keeps_zeros
from hbfp.golden.ops.results import running, without
from hbfp.golden.vector import programs
from hbfp.golden.vector.side import registers
from hbfp.isa.instructions import VECTOR_OUTPUTS

from .. import vectors, windows
from ..errors import LoweringError
from ..long_rows import divides, long_rows
from ..memory import Value
from ..nodes import Made, Nodes
from ..same import aten
from ..sums import sums
from .chained import adds_rows, elements_of, order_of, sums_along, sums_of
from .forms import formed

#: Rows that a program gives at a time.
SLOTS = len(VECTOR_OUTPUTS)


def vector(net: Nodes, node: Any) -> Made:
    """Lower a node by the form of its operation; LoweringError if it has none, or the vector unit is too small."""
    form, operands = formed(net, node)
    if net.batches and isinstance(form, Elements) and len(form.results) == 1:
        return elements_of(net, node, form.program, operands)
    if isinstance(form, Rows) and operands[0] in net.chains:
        if adds_rows(form):
            return sums_of(net, node, form, operands[0])
        if (both := sums_along(net, form, operands[0])) is not None:
            return _rows(net, node, *both)
    values = [net.value(each) for each in operands]
    match form:
        case Elements():
            return _elements(net, node, form, values)
        case Rows():
            return _rows(net, node, form, values)
    return _windows(net, node, form, values[0])


def _elements(net, node, form, values):
    program = form.program
    if program == programs.add() and (last := net.follower(node, aten.relu.default)) is not None:
        net.done.add(last)
        node, program = last, programs.add("relu")
    return elementwise(net, node, program, *values)


def elementwise(net: Nodes, node: Any, program: Program, *operands: Value) -> Made:
    """Run a program for each element of a node's result, to whose shape operands are broadcast."""
    output = net.fresh(node, order_of(operands, net.graph.results[node]))
    single = [place for place, each in enumerate(operands) if each.where.numel() == 1 < output.where.numel()]
    if len(single) == 1:                                   # else it would be loaded once for each number
        vectors.number(net.build, operands[single[0]], vectors.SPARE)
        program = vectors.with_scalar(program, single[0], vectors.SPARE)
        operands = tuple(each for place, each in enumerate(operands) if place != single[0])
    parts = [Value(each.where.expand(output.shape), each.home) for each in operands]
    if not output.shape:
        *parts, output = (Value(each.where[None], each.home) for each in (*parts, output))
    order = vectors.physical(output)
    flat = output.shape[order[-1]] % net.build.lanes == 0 or not single and keeps_zeros(program, len(parts))
    vectors.by_rows(net.build, program, parts, order, [output], flat=flat)
    return node, ()


def _rows(net, node, form, values):
    sources = [_seen(net, each, form.rows) for each in values]
    shape = sources[0].shape
    inner = form.dim % len(shape)
    if not form.sums and -(-shape[inner] // net.build.lanes) > net.accelerator.row_words:
        return _columns(net, node, form, sources, inner)
    long = not adds_rows(form) and -(-shape[inner] // net.build.lanes) > net.accelerator.row_words
    if long and form.program == programs.row_sum() and form.results[0].over:    # of each row, and then of these
        rows = net.dense(tuple(1 if d == inner else size for d, size in enumerate(shape)))
        long_rows(net.build, form.program, sources, inner, [rows], {})
        form, sources, long = replace(form, program=programs.activation()), [rows], False
    if long and (any(result.over for result in form.results) or not divides(form.program)):
        _row_fits(net, shape[inner])
    if form.numbers and not long:
        vectors.constant_rows(net.build, _numbers(net, node, form))
    readers = net.readers(node)
    outputs = [_space(net, node if number == 0 else readers[number][0], form, place, shape, inner)
               for place, number in enumerate(readers or [0])]
    if readers and list(readers) != [0]:
        net.values[node] = {number: net.values.pop(node if number == 0 else own[0]) for number, own in readers.items()}
    given = [each for each, result in zip(outputs, form.results, strict=True) if not result.over]
    totals = [each for each, result in zip(outputs, form.results, strict=True) if result.over]
    if long:
        kept = {number: each if isinstance(each, Value) else net.build.dram.constant(each)
                for number, each in enumerate(_numbers(net, node, form), 1)}
        long_rows(net.build, form.program, sources, inner, given, kept)
        return node, ()
    if not totals:
        order = [d for d in range(len(shape)) if d != inner] + [inner]
        for first in range(0, len(given), SLOTS):          # again from the start, where there are more than slots
            here = range(first, min(first + SLOTS, len(given)))
            program = without(form.program, *(place for place in range(len(given)) if place not in here))
            vectors.by_rows(net.build, program, sources, order, [given[place] for place in here])
        return node, ()
    over, = {result.over for result in form.results if result.over}
    parts = running(form.program, form.results, registers(form.program))
    left = [d for d in range(len(shape)) if d != inner and d not in over]
    for place in np.ndindex(*(shape[d] for d in left)):
        own = [[each.at(dict(zip(left, place, strict=True))) for each in some] for some in (sources, given, totals)]
        sums(net.build, parts, own[0], over, inner, own[1], own[2])
    return node, ()


def _columns(net, node, form, sources, inner):
    """Rows that are longer than the vector unit's, of which each element is by itself: some words of all at a time."""
    lanes, most = net.build.lanes, net.accelerator.row_words
    output = _space(net, node, form, 0, sources[0].shape, inner)
    numbers = _numbers(net, node, form)
    order = [d for d in range(len(sources[0].shape)) if d != inner] + [inner]
    for word in range(0, -(-sources[0].shape[inner] // lanes), most):
        parts = [each.words(inner, word, most, lanes) for each in (*sources, output)]
        vectors.constant_rows(net.build, [each.words(0, word, most, lanes) if isinstance(each, Value) else
                                          each[word * lanes:(word + most) * lanes] for each in numbers])
        vectors.by_rows(net.build, form.program, parts[:-1], order, parts[-1:])
    return node, ()


def _numbers(net, node, form):
    """The rows of a form's parameters: numbers, or where they lie."""
    nodes = {id(net.graph.results[each]): each for each in node.all_input_nodes if not net.is_constant(each)}
    if any(id(each) in nodes for each in form.numbers):
        return [_seen(net, net.value(nodes[id(each)]), torch.flatten) if id(each) in nodes
                else patterns(each).reshape(-1).view(np.float32) for each in form.numbers]
    return [row.reshape(-1).view(np.float32) for row in form.fixed(*map(patterns, form.numbers))]


def _space(net, reader, form, number, shape, inner):
    """Space for a result of rows, where its node finds it: the dimensions of the rows, those that are gone as 1."""
    result = form.results[number]
    gone = {*result.over, *([inner] if result.single else ())}
    if result.single or form.merged > 1:
        output = net.dense([1 if d in gone else size for d, size in enumerate(shape)])
        net.values[reader] = Value(form.result(output.where, number), output.home)
        return output
    kept = [d for d in range(len(shape)) if result.keep or d not in gone]
    output = net.fresh(reader, [kept.index(d) for d in kept if d != inner] + [kept.index(inner)])
    for d in () if result.keep else sorted(gone):
        output = Value(output.where.unsqueeze(d), output.home)
    return output


def _row_fits(net, length):
    longest = net.accelerator.row_words * net.build.lanes
    if length > longest:
        words = -(-length // net.build.lanes)
        raise LoweringError(f"rows of {length} numbers are longer than the vector unit's {longest}; --row-words "
                            f"{words} would do")


def _windows(net, node, form, value):
    taps = form.size[0] * form.size[1]
    if not windows.taps_fit(taps):
        raise LoweringError(f"windows of {taps} elements are more than a vector instruction's; at most "
                            f"{vectors.BODY - 1} would do")
    value = _seen(net, value, form.images)
    if len(value.shape) < 3:
        raise LoweringError(f"its operand has {len(value.shape)} dimensions; images (N, C, H, W) would do")
    own = windows_space(net, node, form)
    if len(value.shape) == 3:                              # one image alone
        value, own = (Value(each.where[None], each.home) for each in (value, own))
    windows.pool(net.build, value, own, form)
    return node, ()


def windows_space(net: Nodes, node: Any, form: Windows) -> Value:
    """Space for what windows give, as images (..., OH, OW), channels innermost."""
    output = net.fresh(node, _channels_inside(form))
    return Value(form.places(output.where), output.home)


def _channels_inside(form):
    """The order of a result's dimensions in which the channels of the windows' images are innermost."""
    dims = form.operands[0].dim()
    if form.line:
        return [*range(dims - 2), dims - 1, dims - 2]
    if not form.over:
        return [1, 2, 0] if dims == 3 else None            # one image alone
    *kept, channels = (d for d in range(dims) if d not in form.over)
    return [*kept, *form.over, channels] if form.keep else list(range(len(kept) + 1))


def _seen(net, value, view):
    """A view of a value, or of a copy in torch's own order where it has none."""
    seen = value.seen(view) or net.contiguous(value).seen(view)
    if seen is None:
        raise LoweringError("its operand cannot be seen as rows or windows; other dimensions would do")
    return seen
