"""What each node of a captured step gives, and which of them a host computes for each batch."""

from typing import Any

import torch
from torch import fx

from hbfp.golden.nn.side import sided
from hbfp.golden.vector.side import Side

from ..errors import NO_OPERATION, LoweringError
from ..graph import Graph, needed, refusal
from ..operations.tables import BY_NUMBER
from .capture import Capture
from .masks import computes


def evaluated(capture: Capture, side: Side, values: bool) -> tuple[Graph, dict[fx.Node, str], set[fx.Node]]:
    """The graph with what each node gives in the first step, or without ``values`` its shape; what a program calls its
    inputs that follow from whole numbers; and all nodes that these decide.
    """
    results, fixed, whole, nodes = dict[fx.Node, Any](), set[fx.Node](), set[fx.Node](), list[fx.Node]()
    inputs, moved, moving, same = dict[fx.Node, str](), dict[fx.Node, str](), set[fx.Node](), dict[str, fx.Node]()
    with torch.no_grad(), sided(side):
        for node in capture.graph.graph.nodes:
            if node.op == "placeholder":
                results[node] = capture.given[node.name]
                if node.name in capture.held:
                    fixed.add(node)
                elif results[node].is_floating_point():
                    inputs[node] = capture.names[node.name]
                    moving.add(node)
                    results[node] = results[node] if values else _shaped(results[node])
                else:
                    whole.add(node)
            elif node.op == "get_attr":
                results[node] = getattr(capture.graph, node.target).detach()
                fixed.add(node)
            elif node.op == "call_function":
                if isinstance(node.target, torch._ops.HigherOrderOperator) or "out" in node.kwargs:
                    raise refusal(node, NO_OPERATION)
                if values or moving.isdisjoint(node.all_input_nodes):
                    args, options = fx.node.map_arg((node.args, node.kwargs), lambda each: results[each])
                    results[node] = called(node, args, options)
                else:
                    results[node] = torch.utils._pytree.tree_map_only(torch.Tensor, _shaped, node.meta["val"])
                free = whole.isdisjoint(node.all_input_nodes)
                if moving.isdisjoint(node.all_input_nodes) and (free or not computes(node)):
                    node.replace_all_uses_with(same.setdefault(repr((node.target, node.args, node.kwargs)), node))
                    (fixed if free else whole).add(node)
                    continue
                moving.add(node)
                nodes.append(node)
                for each in node.all_input_nodes:
                    if each in whole and not (node.target in BY_NUMBER and each is node.args[1]):
                        moved[each] = inputs[each] = _name(each, capture.names, set(moved.values()))
    outputs = list(capture.outputs.values())
    wanted = [results[each] for each in outputs]
    return Graph(needed(nodes, fixed, outputs), results, fixed, inputs, outputs, wanted, {}), moved, whole


def _shaped(tensor):
    """A tensor of the same shape, without values."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def called(node: fx.Node, args: Any, options: Any) -> Any:
    """What a node gives; LoweringError if a class number is none, as where torch itself raises."""
    try:
        return node.target(*args, **options)
    except (IndexError, RuntimeError) as error:
        raise LoweringError(f"The whole numbers of a batch do not fit the step: {error}") from None


def _name(node, names, taken):
    """What an input is called that follows from whole numbers: after the first of them that it comes from."""
    above = next(each for each in _ancestors(node) if each.op == "placeholder")
    name = names[above.name] + ("" if above is node else " rows")
    return name if name not in taken else f"{name} {node.name}"


def _ancestors(node):
    """A node and what it comes from, the first operand's first."""
    yield node
    for each in node.all_input_nodes:
        yield from _ancestors(each)
