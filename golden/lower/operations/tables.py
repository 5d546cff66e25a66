"""Rows of tables that whole numbers of a batch name, and their gradients.

An instruction has one address, so that a host writes the addresses of a batch into the instructions that take its rows:
:class:`Choice` says which, and how they follow from the numbers.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from hbfp.golden.ops.bags import bags as found
from hbfp.golden.ops.bags import check, factor
from hbfp.golden.ops.operation import Unsupported
from hbfp.golden.ops.results import Result, running
from hbfp.golden.vector import programs
from hbfp.isa.instructions import Instruction, Memory, Opcode

from .. import vectors
from ..builder import dram_span
from ..errors import LoweringError
from ..memory import Value
from ..nodes import Made, Nodes
from ..schedule import Span
from ..sums import sums

aten = torch.ops.aten
#: Operations that take rows by numbers, their second operand.
BY_NUMBER = (aten.embedding.default, aten.embedding_dense_backward.default)


@dataclass(frozen=True)
class Choice:
    """An instruction that takes a row of a table.

    Attributes
    ----------
    instruction : int
        Its number in the program.
    fields : tuple of str
        Those that say where the row is.
    index : torch.fx.Node
        The tensor of the rows' numbers.
    place : int
        Which of them counts, in torch's order.
    base, step : int
        Where row 0 of those that it may take is, and how far the next is from it.
    of, first, rows : int
        Rows of the table; the first that it may take, and how many. Another one stands for row number ``rows`` of them.
    padding : int
        A row that stands for that, too; -1: none.
    """
    instruction: int
    fields: tuple[str, ...]
    index: fx.Node
    place: int
    base: int
    step: int
    of: int
    first: int
    rows: int
    padding: int = -1

    def values(self, number: int) -> dict[str, int]:
        """The fields for the row of this number."""
        row = number - self.first
        at = self.base + self.step * (row if 0 <= row < self.rows and number != self.padding else self.rows)
        return dict.fromkeys(self.fields, at)

    def written(self, instruction: Instruction, number: int) -> Instruction:
        """The instruction with these fields."""
        return Instruction(instruction.opcode, dict(instruction.values) | self.values(number), instruction.waits)


def rows(net: Nodes, node: Any) -> Made:
    """Copy the rows of a table that numbers of a batch name."""
    table, index = node.args[:2]
    source, lanes = _whole(net, net.value(table)), net.build.lanes
    numbers = net.constant(index).reshape(-1).tolist()
    output = net.fresh(node, list(range(len(net.graph.results[node].shape))))
    (count, step), (length, _) = source.dims()
    words = -(-length // lanes)
    reach = dram_span(source.address, (0, (count - 1) * step + words * lanes, 0, 0))
    flat = _flat(output, words, len(numbers), lanes)
    most = max(1, net.build.v.size // 4 // words)
    for start in range(0, len(numbers), most):
        some = numbers[start:start + most]
        span = net.build.v.take(len(some) * words)
        for place, number in enumerate(some):
            base = span.start + place * words
            net.build.schedule.emit(Opcode.LOAD, {
                "memory": Memory.V, "offset": 4 * (source.address + number * step), "count0": words, "count1": 1,
                "count2": 1, "base": base}, [reach], [Span("V", base, base + words)])
            _chosen(net, index, start + place, ("offset",), 4 * source.address, 4 * step, count, 0, count)
        net.build.brought_other(span)
        net.build.store(span.start, words, flat, (), 1, skip=start * words * lanes, rows=[(len(some), words * lanes)])
    return node, ()


def rows_gradient(net: Nodes, node: Any) -> Made:
    """Add up, from +0 on, what the places of a row of a table get, in their order; in V, some rows at a time.

    Raises
    ------
    LoweringError
        If V does not hold a row.
    """
    gradient, index, count, padding = node.args[:4]
    numbers = net.constant(index).reshape(-1).tolist()
    build, lanes = net.build, net.build.lanes
    output = net.fresh(node, [0, 1])
    length = output.shape[1]
    words = -(-length // lanes)
    source = _flat(_whole(net, net.value(gradient)), words, len(numbers), lanes)
    together = max(1, min(count, build.v.size // 2 // words - 1))
    table = build.keep((together + 1) * words)             # one more row, for all that is not among these
    most = max(1, build.v.size // 2 // words)
    for first in range(0, count, together):
        some = min(together, count - first)
        build.fill(table.start, (together + 1) * words)
        for start in range(0, len(numbers), most):
            part = numbers[start:start + most]
            span = build.v.take(len(part) * words)
            build.load(source, (), 1, span.start, words, skip=start * words * lanes,
                       rows=[(len(part), words * lanes)])
            for place, number in enumerate(part):
                _add(net, index, start + place, number, table, span.start + place * words, words, count, first,
                     some, padding)
        build.store(table.start, words, output, (), 1, skip=first * output.dims()[0][1],
                    rows=[(some, output.dims()[0][1])])
    return node, ()


def bags(net: Nodes, node: Any) -> Made:
    """Sums of rows of a table, or means; LoweringError if a batch or real numbers choose the rows."""
    usual: list[Any] = [False, 0, False, None, False, -1]
    table, index, offsets, _, mode, _, weights, last, padding = list(node.args) + usual[len(node.args) - 3:]
    if not all(net.is_constant(each) and each not in net.whole for each in (index, offsets)):
        raise LoweringError("its indices depend on real numbers, or change; whole numbers among the inputs would do")
    try:
        check(mode, weights)
    except Unsupported as error:
        raise LoweringError(str(error)) from None
    source, output = net.value(table), net.fresh(node, [0, 1], 0.0)
    parts = running(programs.activation(), (Result(over=(0,)),), 0)
    for place, rows_ in enumerate(found(net.constant(index), net.constant(offsets), last, padding)):
        if rows_:
            some = net.build.dram.empty((len(rows_), source.shape[1]))
            for number, row in enumerate(rows_):
                net.copy(Value(source.where[row][None], source.home), Value(some.where[number][None], some.home))
            own = Value(output.where[place][None], output.home)
            sums(net.build, parts, [some], (0,), 1, [], [own])
            if factor(mode, rows_) != 1:
                vectors.by_rows(net.build, programs.scale(factor(mode, rows_)), [own], [0, 1], [own])
    return node, ()


def _add(net, index, place, number, table, source, words, of, first, rows, padding):
    """Add words of V to the row of a number in the table there."""
    build, program, longest = net.build, programs.add(), net.accelerator.row_words
    for word in range(0, words, longest):
        some = min(longest, words - word)
        choice = Choice(0, ("i0_base", "o0_base"), index, place, table.start + word, words, of, first, rows, padding)
        at = choice.values(number)["i0_base"]
        own, other = Span("V", at, at + some), Span("V", source + word, source + word + some)
        vectors.run(build, program, some * build.lanes, 1, some, [own, other], [own], whole=table)
        _chosen(net, index, place, choice.fields, choice.base, words, of, first, rows, padding)


def _chosen(net, index, place, fields, *others):
    """Note that the last instruction takes a row of a number of the batch."""
    if not net.is_constant(index):
        net.choices.append(Choice(len(net.build.schedule.instructions) - 1, fields, index, place, *others))


def _whole(net, value):
    """A value whose rows along the last dimension are whole words that follow each other, a copy if need be."""
    last, lanes = len(value.shape) - 1, net.build.lanes
    dense = net.build.dram.empty(value.shape)
    if value.whole_words(last, lanes) and value.where.stride() == dense.where.stride():
        return value
    net.copy(value, dense)
    return dense


def _flat(value, words, count, lanes):
    """A value of rows of whole words as one of (rows, numbers)."""
    return Value(value.where.as_strided([count, value.shape[-1]], [words * lanes, 1]), value.home)
