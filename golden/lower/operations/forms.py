"""The form that the table of operations has for a node."""

from dataclasses import replace
from typing import Any

from torch import fx

from hbfp.golden.ops.operation import Form, Rows, Unsupported
from hbfp.golden.ops.results import without
from hbfp.golden.ops.table import operation_of

from ..errors import LoweringError
from ..nodes import Nodes


def formed(net: Nodes, node: Any) -> tuple[Form, list[fx.Node]]:
    """The form of a node's operation, and the nodes of its operands; LoweringError if it has none.

    Of its results the form has those that another node reads, the first if that is none.
    """
    operation = operation_of(node.target)
    assert operation is not None and operation.form is not None
    args, options = fx.node.map_arg((node.args, node.kwargs), lambda each: net.graph.results[each])
    try:
        form = operation.form(*args, **options)
    except Unsupported as error:
        raise LoweringError(str(error)) from None
    read, count = list(net.readers(node)) or [0], len(form.results)
    if unknown := [number for number in read if number >= count]:
        raise LoweringError(f"its result {unknown[0]} is read, where only {count} can be had")
    if count > 1:
        program = without(form.program, *(number for number in range(count) if number not in read))
        form = replace(form, program=program, results=tuple(form.results[number] for number in read))
    nodes = {id(net.graph.results[each]): each for each in node.all_input_nodes}
    operands = [nodes[id(each)] for each in form.operands]
    numbers = [nodes.get(id(each)) for each in form.numbers] if isinstance(form, Rows) and form.as_given else []
    if not all(each in operands or each in numbers or net.is_constant(each) for each in node.all_input_nodes):
        raise LoweringError("its parameters are trained, or depend on the inputs; constant ones would do")
    return form, operands
