"""The graph of a model: torch's operations and products in HBFP, what each gives, and which are constants."""

import copy
import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from hbfp.golden.nn import convert
from hbfp.golden.nn.side import Distance, SideMode, watched
from hbfp.golden.side import Side
from hbfp.system import Accelerator

from .export import exported
from .formats import check_formats, formats

aten = torch.ops.aten
#: Operations that say something about a tensor and give none.
_SILENT = (aten._assert_tensor_metadata.default, aten._assert_async.msg, aten.sym_constrain_range_for_size.default)
#: Operations that give their first operand, in evaluation.
_SAME = (aten.clone.default, aten.alias.default, aten.detach.default, aten.contiguous.default, aten.dropout.default,
         aten.lift_fresh_copy.default, aten.to.dtype, aten.to.device, aten.to.dtype_layout, aten._to_copy.default)


@dataclass
class Graph:
    """A traced model.

    Attributes
    ----------
    nodes : list of torch.fx.Node
        What is computed, in order; what nobody needs is left out.
    results : dict
        Node -> what it gives for the inputs, under the accelerator's arithmetic.
    constants : set of torch.fx.Node
        Those that do not depend on the inputs.
    inputs : dict
        Node -> name, of the model's inputs that are real numbers.
    outputs : list of torch.fx.Node
    distances : dict
        Operation -> how far the accelerator's results are from those of torch's own function.
    """
    nodes: list[fx.Node]
    results: dict[fx.Node, Any]
    constants: set[fx.Node]
    inputs: dict[fx.Node, str]
    outputs: list[fx.Node]
    distances: dict[str, Distance]


def reference(model: torch.nn.Module, accelerator: Accelerator) -> torch.nn.Module:
    """A copy of a model as PyTorch computes it bit for bit like the accelerator, in evaluation."""
    return convert(copy.deepcopy(model).eval(), formats(accelerator), side=Side.of(accelerator))


def traced(model: torch.nn.Module, inputs: tuple[Any, ...], accelerator: Accelerator) -> Graph:
    """Trace a model with torch.export.

    Parameters
    ----------
    model : torch.nn.Module
        In float32; it stays as it is. If :func:`golden.nn.convert` has converted it, then to the accelerator's formats.
    inputs : tuple
        What its ``forward`` takes.

    Raises
    ------
    LoweringError
        If torch cannot trace it, or it has other formats than the accelerator.
    """
    twin = convert(copy.deepcopy(model).eval(), formats(accelerator))
    program = exported(twin, inputs, pure=True)
    check_formats(model, inputs, accelerator)
    signature = program.graph_signature
    held = {name: program.state_dict[key] for name, key in (*signature.inputs_to_parameters.items(),
                                                            *signature.inputs_to_buffers.items())
            if key in program.state_dict}
    held |= {name: program.constants[key] for name, key in (*signature.inputs_to_lifted_tensor_constants.items(),
                                                            *signature.inputs_to_buffers.items())
             if key in program.constants}
    given = dict(zip(signature.user_inputs, torch.utils._pytree.tree_leaves(inputs), strict=True))
    _shorten(program.graph)
    return _evaluated(program.graph, held, given, Side.of(accelerator))


def _shorten(graph):
    """Let users of a node that gives its operand use that."""
    for node in graph.nodes:
        if node.target in _SAME and node.meta["val"].dtype == node.args[0].meta["val"].dtype:
            node.replace_all_uses_with(node.args[0])


def _evaluated(graph, held, given, side):
    """Run a graph on the inputs."""
    results, constants, inputs, outputs, nodes = {}, set(), {}, [], []
    chosen = set()                                     # constants that integers among the inputs decide
    with torch.no_grad(), watched() as distances, SideMode(side):
        for node in graph.nodes:
            if node.op == "placeholder":
                real = node.name in given and isinstance(given[node.name], torch.Tensor) and given[
                    node.name].is_floating_point()
                results[node] = (given if node.name in given else held)[node.name]
                if real:
                    inputs[node] = node.name
                else:
                    constants.add(node)
                    chosen |= {node} if node.name in given else set()
            elif node.op == "output":
                outputs = [each for each in torch.utils._pytree.tree_leaves(node.args[0]) if isinstance(each, fx.Node)]
            elif node.target not in _SILENT:
                args, options = fx.node.map_arg((node.args, node.kwargs), lambda each: results[each])
                results[node] = node.target(*args, **options)
                if all(each in constants for each in node.all_input_nodes):
                    if not chosen.isdisjoint(node.all_input_nodes):
                        chosen.add(node)
                    if node not in chosen or not _real(results[node]):
                        constants.add(node)
                nodes.append(node)
    return Graph(_needed(nodes, constants, outputs), results, constants, inputs, outputs, distances)


def _real(result):
    first = result[0] if isinstance(result, (tuple, list)) else result
    return isinstance(first, torch.Tensor) and first.is_floating_point()


def masked(node: fx.Node) -> fx.Node | None:
    """Of ``masked_fill(x, all scores are -inf, 0)``, which spares rows that take part in nothing, x; else None."""
    if node.target == aten.masked_fill.Scalar and node.args[2] == 0:
        found = node.args[1]
        while isinstance(found, fx.Node) and found.target in (aten.all.dim, aten.any.dim, aten.logical_not.default):
            found = found.args[0]
        if isinstance(found, fx.Node) and found.target == aten.eq.Scalar:
            return node.args[0]
    return None


def _needed(nodes, constants, outputs):
    """Nodes that outputs depend on and that are no constants."""
    wanted, found = set(outputs), []
    for node in reversed(nodes):
        if node in wanted and node not in constants:
            found.append(node)
            source = masked(node)
            wanted |= {source} if source is not None else set(node.all_input_nodes)
    return found[::-1]


def place(node: fx.Node) -> str:
    """The qualified name of the module that a node belongs to."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return stack[-1][0] if stack else ""


def kind(node: fx.Node) -> str:
    """What a node does, for messages and tables."""
    return "getitem" if node.target is operator.getitem else node.target.overloadpacket.__name__.strip("_")
