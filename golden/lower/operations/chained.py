"""Operations on each element of a step of training: a program does several of them, one behind the other."""

from dataclasses import replace
from functools import partial
from typing import Any

from torch import fx

from hbfp.golden.ops.operation import Elements, Program, Rows, Shape, keeps_zeros
from hbfp.golden.ops.results import running
from hbfp.golden.ops.table import operation_of
from hbfp.golden.spec.vector import SCALARS, Target, register, scalar
from hbfp.golden.vector import programs
from hbfp.isa.instructions import VECTOR_INPUTS

from .. import vectors
from ..alike import Alike
from ..chains import Chain, composed, computes, kept_copy, passes_of, rows_of, scalars_of, simple, with_operands
from ..errors import LoweringError
from ..memory import Value
from ..nodes import Made, Nodes
from ..sums import sums
from ..tensors import channels_last
from .forms import formed

#: Words of a row of which two passes take longer than a pass of long rows and one of these.
_SHORT = 1
#: Most passes that each of several readers does again.
_AGAIN = 4


def order_of(operands: Any, result: Any) -> list[int]:
    """The order of the dimensions of the largest operand; one that says a number several times has no order."""
    whole = [each for each in operands if each.shape == tuple(result.shape)
             and all(stride or size == 1 for size, stride in each.dims())]
    if whole:
        return vectors.physical(whole[0])
    return list(range(result.dim())) if 1 in result.shape else channels_last(result.dim())


def elements_of(net: Nodes, node: Any, program: Program, operands: list[fx.Node]) -> Made:
    """Put an operation off until those that read its result, or run it with all that was put off for it.

    Several do it again, each for itself, if that takes no more tensors than its result is.
    """
    chain, users = _chain(net, node, program, operands), net.users(node)
    again = len(users) == 1 or _streams(net, node, chain) == 1 and passes_of(chain.program) <= _AGAIN
    if simple(chain.program) and again and users and all(_takes(net, node, user) for user in users):
        net.chains[node] = Chain(chain.program, chain.operands, partial(_run, net, node, chain), len(users))
    else:
        _run(net, node, chain, waits=True)
    return node, ()


def adds_rows(form: Rows) -> bool:
    """Whether a form does nothing but add up rows over dimensions."""
    return bool(form.results[0].over) and form.program == programs.activation() and form.merged == 1


def _adds_all(net, form):
    """Whether a form adds up rows, and each along itself, in a job whose models do so together."""
    return (form.program == programs.row_sum() and bool(form.results[0].over) and net.build.waiting is not None
            and net.accelerator.short_rows > 0 and form.operands[0].shape[form.dim] <= net.build.lanes)


def sums_along(net: Nodes, form: Rows, operand: fx.Node) -> tuple[Rows, list[Value]] | None:
    """The form that adds up all of the rows that a chain gives, and its operands; None if it is not one program."""
    if not _adds_all(net, form):
        return None
    chain, shape = net.chains[operand], net.graph.results[operand].shape
    if len(chain.operands) > len(VECTOR_INPUTS) or scalars_of(chain.program) or _kinds(net, operand, chain).count(
            "stream") < len(chain.operands):
        return None
    net.take_up(operand)
    streams = [Value(value.where.expand(shape), value.home) for value in map(net.value, chain.operands)]
    (total, *rest), (*first, last) = form.program, chain.program
    added = replace(last, target=Target.NONE, target_index=0, reduce=total.reduce, reduce_index=total.reduce_index)
    return replace(form, program=[*first, added, *rest]), streams


def sums_of(net: Nodes, node: Any, form: Rows, operand: fx.Node) -> Made:
    """Add up rows that a program makes of operands, whose result does not go to DRAM."""
    shape = net.graph.results[operand].shape
    inner = form.dim % len(shape)
    chain = net.take_up(operand)
    streams, kept, program = _placed(net, chain, shape, inner)
    beside = net.build.waiting is not None and net.accelerator.short_rows
    short = shape[inner] <= _SHORT * net.build.lanes and passes_of(program) > 1 and not beside
    if (short or rows_of(program) + 2 > net.accelerator.vector_rows or len(streams) > len(VECTOR_INPUTS)
            ) and chain.run is not None:
        chain.run()
        streams, kept, program = [net.value(operand)], {}, programs.activation()
    result = form.results[0]
    left = [d for d in range(len(shape)) if result.keep or d == inner]
    output = net.fresh(node, [left.index(d) for d in left if d != inner] + [left.index(inner)])
    for d in () if result.keep else result.over:
        output = Value(output.where.unsqueeze(d), output.home)
    sums(net.build, running(program, form.results, rows_of(program)), streams, result.over, inner, (), [output], kept)
    return node, ()


def _chain(net, node, program, operands):
    """The program of a node with what was put off for it, as far as the vector unit can do it at a time."""
    while True:
        parts = {each: net.chains[each] for each in operands if each in net.chains}
        chain = composed(program, operands, parts)
        if not parts or _fits(net, node, chain):
            for each in parts:
                net.take_up(each)
            return chain
        net.value(next(iter(parts)))                       # to DRAM after all


def _kinds(net, node, chain):
    """How a chain gets each of its operands."""
    shape = net.graph.results[node].shape
    return [_kind(net, each, shape) if computes(chain.program, place) else "stream"
            for place, each in enumerate(chain.operands)]


def _streams(net, node, chain):
    """How many tensors a chain reads row by row."""
    return _kinds(net, node, chain).count("stream")


def _fits(net, node, chain):
    kinds = _kinds(net, node, chain)
    return (kinds.count("stream") <= len(VECTOR_INPUTS) and scalars_of(chain.program) + kinds.count("number") <= SCALARS
            and rows_of(chain.program) + kinds.count("row") <= net.accelerator.vector_rows
            and len(chain.program) < vectors.BODY)


def _kind(net, node, shape):
    """How a program gets an operand: as a number in a scalar, as one row in a register, or as rows."""
    own = net.graph.results[node].shape
    if own.numel() == 1 < shape.numel():
        return "number"
    full = [1] * (len(shape) - len(own)) + list(own)
    inner = channels_last(len(shape))[-1] if len(shape) else 0
    fits = len(shape) > 1 and -(-shape[inner] // net.build.lanes) <= net.accelerator.row_words
    return "row" if fits and own.numel() == full[inner] == shape[inner] < shape.numel() else "stream"


def _takes(net, node, user):
    """Whether a node that reads a result takes it as a part of its own program."""
    operation = operation_of(user.target)
    if operation is None or operation.shape not in (Shape.ELEMENT, Shape.ROW):
        return False
    try:
        form, _ = formed(net, user)
    except LoweringError:                                  # which it meets again when its own turn comes
        return False
    if isinstance(form, Elements):
        return net.graph.results[user].shape == net.graph.results[node].shape and simple(form.program)
    dims = len(net.graph.results[node].shape)
    return isinstance(form, Rows) and len(form.results[0].over) + 1 == dims and (
        adds_rows(form) or _adds_all(net, form))


def _placed(net, chain, shape, inner):
    """Operands that a chain takes as rows, those that lie in registers, and the program with these."""
    places, streams, kept = [], [], {}
    rows, numbers = rows_of(chain.program), SCALARS
    for place, each in enumerate(chain.operands):
        value = net.value(each)
        if (copy := kept_copy(chain.program, chain.operands, place)) is not None:
            places.append(copy)
            continue
        own = value.where.expand(shape)
        kind = _kind(net, each, shape) if computes(chain.program, place) else "stream"
        match kind:
            case "number":
                numbers -= 1
                vectors.number(net.build, value, numbers)
                places.append(scalar(numbers))
            case "row" if own.stride(inner) == 1 and rows < net.accelerator.vector_rows:
                where = own[tuple(slice(None) if d == inner else 0 for d in range(len(shape)))]
                places.append(register(rows))
                kept[rows] = Value(where, value.home)
                rows += 1
            case _:
                places.append(None)
                streams.append(Value(own, value.home))
    return streams, kept, with_operands(chain.program, places)


def _run(net, node, chain, waits=False):
    """Run a chain; its result goes to DRAM, at the end of a turn if it ``waits`` for those of other models."""
    result = net.graph.results[node]
    values = [net.value(each) for each in chain.operands]
    for dims in (order_of(values, result), channels_last(result.dim())):     # rows in registers lie along the channels
        output = net.fresh(node, dims)
        order = vectors.physical(output) if result.dim() else [0]
        streams, kept, program = _placed(net, chain, result.shape, order[-1])
        if len(streams) <= len(VECTOR_INPUTS):
            break
    else:
        raise LoweringError(f"its program takes {len(streams)} tensors at a time; {len(VECTOR_INPUTS)} would do")
    if not result.dim():
        *streams, output = (Value(each.where[None], each.home) for each in (*streams, output))
    flat = result.dim() > 0 and result.shape[order[-1]] % net.build.lanes == 0 or not kept and len(streams) == len(
        chain.operands) and keeps_zeros(program, len(streams))
    count = len(streams)
    if waits and net.build.waiting is not None and count == len(chain.operands):
        alike = Alike("", [(program, range(count), [count])], list, [], [*streams, output], {count: output}, order,
                      flat, (count,))
        if alike.may(net.build):
            net.build.waiting.append(alike)
            return
    vectors.by_rows(net.build, program, streams, order, [output], flat=flat, kept=kept)
