"""The graph of a model: torch's operations and products in HBFP, what each gives, and which of them are constants."""

import copy
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import InputKind, OutputKind

from hbfp.golden.nn import convert
from hbfp.golden.nn.memory import plain
from hbfp.golden.nn.side import Distance, SideMode, watched
from hbfp.golden.ops.patterns import recognise
from hbfp.golden.ops.table import operation_of
from hbfp.golden.vector.side import Side
from hbfp.system import Accelerator

from .errors import NO_OPERATION, LoweringError, broken, instead, layer
from .export import exported, quiet
from .formats import check_formats, formats, keep_widths, sparse
from .hosted import HOST, OnHost, check_called
from .reached import reached
from .same import draws, shorten, spared
from .scaled import is_scaled, scaled
from .transposed import as_gradients

aten = torch.ops.aten
#: Operations that take of a tensor its shape alone.
_OF_SHAPES = {getattr(packet, name) for packet in (aten.zeros_like, aten.ones_like, aten.full_like, aten.new_zeros,
                                                   aten.new_ones, aten.new_full) for name in packet.overloads()}


@dataclass
class Graph:
    """A traced model.

    Attributes
    ----------
    nodes : list of torch.fx.Node
        What the program computes, in order, without what no output needs.
    results : dict
        Node -> what it gives for the inputs, under the accelerator's arithmetic.
    constants : set of torch.fx.Node
        Those whose values the program holds: they depend on no input of real numbers. What integer inputs choose from
        real constants, such as rows of an embedding, is computed instead.
    inputs : dict
        Node -> name, of the model's inputs that are real numbers.
    outputs : list of torch.fx.Node
        Those whose tensors the model returns, in its order.
    wanted : list of Tensor
        What the converted model gives for each output when PyTorch runs it without a trace.
    distances : dict
        Operation -> how far the accelerator's results are from those of torch's own function.
    """
    nodes: list[fx.Node]
    results: dict[fx.Node, Any]
    constants: set[fx.Node]
    inputs: dict[fx.Node, str]
    outputs: list[fx.Node]
    wanted: list[torch.Tensor]
    distances: dict[str, Distance]


def reference(model: torch.nn.Module, accelerator: Accelerator) -> torch.nn.Module:
    """A copy of a model, in evaluation, with which PyTorch computes the accelerator's bits."""
    twin = convert(_copied(model).eval(), formats(accelerator), side=Side.of(accelerator))
    return sparse(keep_widths(model, twin, accelerator), accelerator)


def _copied(model):
    """A copy, without warnings of torch about graphs that it has made itself."""
    with quiet():
        return copy.deepcopy(model)


def traced(model: torch.nn.Module, inputs: tuple[Any, ...], accelerator: Accelerator) -> Graph:
    """Trace a model with torch.export.

    Parameters
    ----------
    model : torch.nn.Module
        In float32; it stays as it is. If :func:`golden.nn.convert` has converted it, then to the accelerator's formats,
        of which layers may have wide mantissas. For an accelerator of ``int8`` one without scales gets those of the
        inputs (:func:`golden.lower.scaled.scaled`). Parts of it may be on the host
        (:func:`golden.lower.hosted.on_host`).
    inputs : tuple
        What its ``forward`` takes.

    Raises
    ------
    LoweringError
        If torch cannot trace it, it has other formats than the accelerator, it draws random numbers, or it has control
        flow as an operation.
    """
    if accelerator.core.number.sums and not is_scaled(model):
        model = scaled(model, [inputs], accelerator)
    twin = keep_widths(model, convert(_copied(model).eval(), formats(accelerator)), accelerator)
    twin, wanted = sparse(twin, accelerator), None
    if any(isinstance(part, OnHost) for part in model.modules()):
        wanted = _wanted(model, inputs, accelerator)           # only a run says what shapes parts on the host give
        check_called(model)
    program = exported(twin, inputs, pure=True)
    check_formats(model, inputs, accelerator)
    signature = program.graph_signature
    held = {name: program.state_dict[key] for name, key in (*signature.inputs_to_parameters.items(),
                                                            *signature.inputs_to_buffers.items())
            if key in program.state_dict}
    held |= {name: program.constants[key] for name, key in (*signature.inputs_to_lifted_tensor_constants.items(),
                                                            *signature.inputs_to_buffers.items())
             if key in program.constants}
    names = [each.arg.name for each in signature.input_specs if each.kind == InputKind.USER_INPUT]
    given = dict(zip(names, torch.utils._pytree.tree_leaves(inputs), strict=True))    # numbers and None, too
    shorten(program.graph)
    as_gradients(program.graph)
    recognise(program.graph, _fixed(program.graph, given))
    returned = [each for each, spec in zip(program.graph.output_node().args[0], signature.output_specs, strict=True)
                if spec.kind == OutputKind.USER_OUTPUT]          # the others are what forward changes of the model
    nodes, results, constants, names, distances = _evaluated(program.graph, held, given, Side.of(accelerator))
    outputs = [each for each in returned if isinstance(each, fx.Node) and isinstance(results[each], torch.Tensor)]
    wanted = _wanted(model, inputs, accelerator) if wanted is None else wanted
    return Graph(needed(nodes, constants, outputs), results, constants, names, outputs, wanted, distances)


def _fixed(graph, given):
    """Says whether a node depends on none of the inputs."""
    moving = reached((node for node in graph.nodes if node.op == "placeholder" and node.name in given), onward=True)
    return lambda node: node not in moving


def _wanted(model, inputs, accelerator):
    """The tensors that a model gives, computed by PyTorch as the accelerator does."""
    own = torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, inputs)       # forward may change them
    with torch.no_grad():
        outputs = reference(model, accelerator)(*own)
    return [each for each in torch.utils._pytree.tree_leaves(outputs) if isinstance(each, torch.Tensor)]


def _evaluated(graph, held, given, side):
    """Run a graph on the inputs: nodes, results, constants, names of inputs, distances."""
    results, constants, inputs, nodes = {}, set(), {}, []
    chosen = set()                                     # constants that integers among the inputs decide
    with torch.no_grad(), watched() as distances, SideMode(side):
        for node in graph.nodes:
            if node.op == "placeholder":
                real = node.name in given and isinstance(given[node.name], torch.Tensor) and given[
                    node.name].is_floating_point()
                value = (given if node.name in given else held)[node.name]
                results[node] = plain(value) if isinstance(value, torch.Tensor) else value
                if real:
                    inputs[node] = node.name
                else:
                    constants.add(node)
                    chosen |= {node} if node.name in given else set()
            elif node.op == "call_function":
                if isinstance(node.target, torch._ops.HigherOrderOperator):
                    raise refusal(node, instead(place(node), NO_OPERATION))
                args, options = fx.node.map_arg((node.args, node.kwargs), lambda each: results[each])
                results[node] = _result(node, args, options)
                if node.target in _OF_SHAPES or node.target != HOST and all(
                        each in constants for each in node.all_input_nodes):
                    if not chosen.isdisjoint(node.all_input_nodes):
                        chosen.add(node)
                    if isinstance(results[node], (int, float)):
                        _write(node, results[node])
                    elif not is_real(results[node]) or node not in chosen or all(
                            each in chosen or not is_real(results[each]) for each in node.all_input_nodes):
                        constants.add(node)
                nodes.append(node)
    return nodes, results, constants, inputs, distances


def _result(node, args, options):
    """What a node gives; LoweringError with its name if torch's graph has what torch refuses."""
    try:
        return node.target(*args, **options)
    except ValueError:                                     # a line of its own
        raise
    except Exception as error:
        raise refusal(node, broken(error)) from error


def is_real(result: Any) -> bool:
    """Whether a result, or the first of several, is a tensor of real numbers."""
    first = result[0] if isinstance(result, (tuple, list)) else result
    return isinstance(first, torch.Tensor) and first.is_floating_point()


def _write(node, number):
    """Give a node's users the number that it has."""
    for user in list(node.users):
        user.args, user.kwargs = fx.node.map_arg((user.args, user.kwargs),
                                                 lambda each: number if each is node else each)


def needed(nodes: Sequence[fx.Node], constants: Set[fx.Node], outputs: Sequence[fx.Node]) -> list[fx.Node]:
    """Nodes, in order, that outputs depend on and that are no constants; LoweringError if one draws random numbers."""
    used, wanted, found = set(outputs), set(outputs), []
    for node in reversed(nodes):
        if node in used:
            if draws(node):
                raise refusal(node, "it draws random numbers, others in each run; a model without it, or with "
                                    "training=False where it has that, would do")
            used |= set(node.all_input_nodes)
        if node in wanted and node not in constants:
            found.append(node)
            pair = spared(node)
            wanted |= set(node.all_input_nodes) if pair is None else {pair[0]}
    return found[::-1]


def refusal(node: fx.Node, why: str) -> LoweringError:
    """The error of a node that cannot be lowered."""
    return LoweringError(f"{layer(place(node))} ({kind(node)}) cannot be lowered: {why}")


def place(node: fx.Node) -> str:
    """The qualified name of the module that a node belongs to; empty for the model itself."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return stack[-1][0] if stack else ""


def kind(node: fx.Node) -> str:
    """What a node does, for messages and tables."""
    operation = operation_of(node.target)
    return operation.name if operation else _called(node).strip("_")


def named(node: fx.Node) -> str:
    """The name of a node: torch's own, with that of the table for its operation."""
    own = node.name.replace(_called(node), kind(node), 1) if operation_of(node.target) else node.name
    return own.lstrip("_")


def _called(node):
    return getattr(node.target, "overloadpacket", node.target).__name__
