"""From a step of training to one program: parameters and state are read and written in place, batches are data."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from torch import fx

from hbfp.checks import check_kind
from hbfp.golden.nn.forms import patterns
from hbfp.golden.nn.side import sided
from hbfp.golden.ops.optimisers import GRADIENT, PARAMETER, Update, start
from hbfp.golden.schedule import MixedMantissa
from hbfp.golden.vector.side import Side
from hbfp.isa.instructions import Instruction
from hbfp.program import Layer, Program
from hbfp.system import Accelerator

from ..builder import Builder
from ..errors import NO_OPERATION, LoweringError
from ..graph import Graph, needed, refusal
from ..lowering import Lowered, finished
from ..network import Network
from ..operations.tables import BY_NUMBER, Choice
from ..schedule import Span
from ..tensors import channels_last
from . import updates
from .capture import Batch, Capture, captured
from .masks import computes
from .reference import BATCH, Loss, Make, Plan, Reference

#: Places for a batch in DRAM, which steps use in turns, so that a host may write the next batch during a step.
PLACES = 2


@dataclass
class Step:
    """A step of training as a program, and PyTorch beside it.

    Attributes
    ----------
    lowered : Lowered
        The program; parameters, state and the first batch are in its memory. ``expected`` is of the first step.
    reference : Reference
        PyTorch, before its first step.
    host : Host
        What a host writes for each batch.
    batch : range
        Bytes of DRAM that are the first of :data:`PLACES` for a batch; the others follow.
    """
    lowered: Lowered
    reference: Reference
    host: "Host"
    batch: range

    def arguments(self) -> tuple[int, ...]:
        """What the next step's program is told: how far behind the first place its batch lies, and numbers.

        Raises
        ------
        LoweringError
            If the optimiser's options have changed otherwise than by learning rates.
        """
        return self.reference.steps % PLACES * len(self.batch), *self.reference.values()

    def at(self, number: int) -> Self:
        """The step of a number: each is this one."""
        return self

    @property
    def programs(self) -> list[Program]:
        """All programs of the training."""
        return [self.lowered.program]

    @property
    def stays(self) -> set[str]:
        """Tensors that a step finds as the one before leaves them: parameters, state and buffers."""
        names = self.lowered.program.tensors
        return {name for name in names if f"{name} after" in names}

    def shift(self, name: str, arguments: Sequence[int]) -> int:
        """Bytes by which a tensor that a host writes lies behind its address, where these are the arguments."""
        return arguments[BATCH - 1] if self.lowered.program.tensors[name].address in self.batch else 0

    def advance(self, batch: Batch) -> dict[str, np.ndarray]:
        """Let PyTorch do a step: name of each tensor of the program that it changes -> its numbers."""
        loss = self.reference.step(*batch)
        orders = self.lowered.orders
        return {name: each.permute(orders[name]).contiguous().numpy()
                for name, each in self.reference.expected(loss, self.host.capture.buffers).items()}


@dataclass
class Host:
    """What a host does for a batch: the numbers of a step's inputs, of which classes become rows of zeros and a one.

    Attributes
    ----------
    capture : Capture
    moved : dict
        Node -> what the program calls it, of inputs that follow from whole numbers of the batch.
    orders : mapping
        Name of a tensor of the program -> the order in which it has the dimensions.
    program : Program
        The program, as it is for the first batch.
    choices : sequence of Choice
        Its instructions that take rows by whole numbers of a batch.
    leaves : dict
        Name of an input -> its type and shape.
    """
    capture: Capture
    moved: dict[fx.Node, str]
    orders: Mapping[str, Sequence[int]]
    program: Program
    choices: Sequence[Choice] = ()
    leaves: dict[str, Any] = field(default_factory=dict)

    def writes(self, batch: Batch) -> dict[str, np.ndarray]:
        """Name of a tensor of the program -> its numbers for a batch; LoweringError if the batch is another kind."""
        given = self._given(batch)
        found = {name: leaf for name, leaf in given.items() if leaf.is_floating_point()}
        found |= dict(zip(self.moved.values(), self._results(given, self.moved), strict=True))
        return {name: each.detach().float().permute(self.orders[name]).contiguous().numpy()
                for name, each in found.items() if name in self.orders}

    def instructions(self, batch: Batch) -> dict[int, Instruction]:
        """Number -> instruction, of those that take rows of tables, for a batch; LoweringError if there is no such row.
        """
        given, program = self._given(batch), self.program
        nodes = list(dict.fromkeys(each.index for each in self.choices))
        numbers = {node: found.reshape(-1).tolist()
                   for node, found in zip(nodes, self._results(given, nodes), strict=True)}
        for choice in self.choices:
            number = numbers[choice.index][choice.place]
            if not 0 <= number < choice.of:
                raise LoweringError(f"The whole numbers of a batch do not fit the step: {number} is no row of a table "
                                    f"of {choice.of}")
        return {each.instruction: each.written(program.instructions[each.instruction], numbers[each.index][each.place])
                for each in self.choices}

    def _given(self, batch):
        """Name -> tensor of a batch; LoweringError if it is another kind than the first."""
        given = self.capture.leaves(batch)
        for name, leaf in given.items():
            own = getattr(leaf, "dtype", type(leaf)), tuple(getattr(leaf, "shape", ()))
            wanted = self.leaves.setdefault(name, own)
            if own != wanted:
                raise LoweringError(f"Tensor {name} of a batch must be {wanted[0]} of {wanted[1]} as in the first, not "
                                    f"{own[0]} of {own[1]}; batches of one size (drop_last=True) would do"
                                    .replace("torch.", ""))
        return given

    def _results(self, given, nodes):
        """What nodes give that follow from whole numbers."""
        results: dict[fx.Node, Any] = {}

        def result(node):
            if node not in results:
                args, options = fx.node.map_arg((node.args, node.kwargs), result)
                results[node] = (given.get(self.capture.names[node.name], self.capture.given[node.name])
                                 if node.op == "placeholder" else
                                 getattr(self.capture.graph, node.target) if node.op == "get_attr" else
                                 _called(node, args, options))
            return results[node]
        return [result(node) for node in nodes]


@dataclass
class _Network(Network):
    """A step on its way into a program: results have names, and behind all of them stand the updates."""
    names: Mapping[fx.Node, str] = field(default_factory=dict)
    results: Mapping[str, fx.Node] = field(default_factory=dict)
    updates: Mapping[str, Update] = field(default_factory=dict)
    buffers: Mapping[str, str] = field(default_factory=dict)
    arguments: Sequence[int] = ()
    given: Collection[str] = ()
    batch: range = range(0)

    def name(self, node: fx.Node) -> str:
        return self.names.get(node) or super().name(node)

    def order(self, node: fx.Node) -> list[int]:
        """What follows from a batch, such as a mask, has no channels."""
        follows = node in self.whole and node.op != "placeholder"
        return list(range(self.graph.results[node].dim())) if follows else super().order(node)

    def copied(self, name: str) -> str:
        return name

    def copying(self, name: str) -> str:
        return f"backward {name}"

    def _place_batch(self):
        """Put what comes with a batch where an argument says."""
        dram = self.build.dram
        first = dram.page()
        for node, name in self.graph.inputs.items():
            if name in self.given:
                self.value(node)
        self.batch = range(first, dram.page())
        dram.end += (PLACES - 1) * len(self.batch) // 4
        self.build.schedule.moved = Span("DRAM", self.batch.start, self.batch.stop), BATCH

    def layer_by_layer(self) -> Iterator[Layer]:
        self._place_batch()
        yield from super().layer_by_layer()
        nodes = {name: node for node, name in self.graph.inputs.items()} | dict(self.results)
        for name, node in self.results.items():            # parameters of which only the sum is read have one gradient
            own = self.names[node]
            self.tensors[name], self.orders[name] = self.tensors[own], self.orders[own]
            self.expected[name] = self.expected[own]
        for name, each in self.updates.items():
            first = len(self.build.schedule.instructions)
            parts = {PARAMETER: nodes[name], GRADIENT: nodes[f"{name} gradient"]}
            values = {part: self.value(node) for part, node in parts.items()}
            numbers = {part: self.graph.results[node] for part, node in parts.items()}
            for kept in each.state:
                numbers[kept] = torch.full_like(numbers[PARAMETER], start(kept))
                values[kept] = self.build.dram.constant(numbers[kept].numpy(), channels_last(numbers[kept].dim()))
                self._known(f"{name} {kept}", values[kept], numbers[kept], "input")
            try:
                updates.lowered(self.build, each, values, self.arguments)
            except LoweringError as error:
                raise LoweringError(f"The update of {name} cannot be lowered: {error}") from None
            self.build.end_layer()
            given = {part: patterns(number.detach()) for part, number in numbers.items()}
            for part, result in updates.told(each, self.arguments).results(given).items():
                own = name if part == PARAMETER else f"{name} {part}"
                self._known(f"{own} after", values[part], torch.from_numpy(result.view(np.float32)), "output")
            self.layers.append(Layer(f"update {name}", first, len(self.build.schedule.instructions)))
            yield self.layers[-1]
        for name, new in self.buffers.items():
            first, value = len(self.build.schedule.instructions), self.value(nodes[name])
            self.copy(self.value(nodes[new]), value)
            self._known(f"{name} after", value, self.graph.results[nodes[new]], "output")
            self.layers.append(Layer(f"update {name}", first, len(self.build.schedule.instructions)))
            yield self.layers[-1]

    def _known(self, name, value, result, role):
        self.known_as(name, value, result, channels_last(result.dim()), role)


def lower_step(model: torch.nn.Module, loss: Loss, optimiser: Make, batch: Batch, accelerator: Accelerator, *,
               stochastic: Sequence[str] = (), seed: int = 1, plan: Plan | None = None, clip: float | None = None,
               mixed: MixedMantissa | None = None, epoch: int = 0) -> Step:
    """The program of a step of training.

    Parameters
    ----------
    model : torch.nn.Module
        In float32; it stays as it is.
    loss : callable
        Of the model's output and the targets.
    optimiser : callable
        Of parameters.
    batch : (tuple, tuple)
        The first: inputs and targets.
    accelerator : Accelerator
    stochastic : sequence of str
        Roles of what is rounded stochastically: of x, w and g, the gradients of outputs.
    seed : int
        Of the numbers that these draw.
    plan : callable, optional
        Gives the schedule of the optimiser's learning rates.
    clip : float, optional
        Gradients are clipped to this norm, as :func:`torch.nn.utils.clip_grad_norm_` does.
    mixed : MixedMantissa, optional
        Mantissas of the layers, in ``epoch``; each of them the accelerator's, or its wide one.

    Returns
    -------
    Step
        Its program's tensors have the parameters' names; those behind the step are ``loss``, ``NAME gradient``, ``NAME
        after`` and, of the optimiser's state, ``NAME STATE after``.

    Raises
    ------
    LoweringError
        If a layer, the loss or the optimiser cannot be lowered; one line with its name, why, and what would do.
    """
    check_kind("accelerator", accelerator, Accelerator)
    check_kind("model", model, torch.nn.Module)
    reference = Reference(model, loss, optimiser, accelerator, stochastic, seed, plan, clip)
    if mixed is not None:
        reference.begin_epoch(mixed, epoch)
    capture = captured(reference, batch)
    graph, moved, whole = _evaluated(capture, Side.of(accelerator))
    names = {node: name for name, node in capture.outputs.items()} | graph.inputs
    build, arguments = Builder(accelerator), (0, *reference.values())
    network = _Network(graph, build, whole=whole, names=names, results=capture.outputs, updates=reference.updates(),
                       buffers=capture.buffers, batches=True, arguments=arguments,
                       given={*capture.leaves(batch), *moved.values()})
    lowered = finished(build, [network])
    lowered.program = replace(lowered.program, arguments=arguments)
    host = Host(capture, moved, lowered.orders, lowered.program, network.choices)
    host.writes(batch)
    return Step(lowered, reference, host, network.batch)


def _evaluated(capture, side):
    """The graph with what each node gives in the first step; its inputs and all nodes that whole numbers decide."""
    results, fixed, whole, nodes = {}, set(), set(), []
    inputs, moved, moving, same = {}, {}, set(), {}
    with torch.no_grad(), sided(side):
        for node in capture.graph.graph.nodes:
            if node.op == "placeholder":
                results[node] = capture.given[node.name]
                if node.name in capture.held:
                    fixed.add(node)
                elif results[node].is_floating_point():
                    inputs[node] = capture.names[node.name]
                    moving.add(node)
                else:
                    whole.add(node)
            elif node.op == "get_attr":
                results[node] = getattr(capture.graph, node.target).detach()
                fixed.add(node)
            elif node.op == "call_function":
                if isinstance(node.target, torch._ops.HigherOrderOperator):
                    raise refusal(node, NO_OPERATION)
                args, options = fx.node.map_arg((node.args, node.kwargs), lambda each: results[each])
                results[node] = _called(node, args, options)
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


def _called(node, args, options):
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
