"""From a step of training to one program: batches are data, and parameters and state go from one place to another.

There are two places for all that comes with a step, which steps use in turns: one has the batch, parameters, state and
buffers, and what these become goes to the other. So a step that is stopped leaves those of before.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import fx

from hbfp.checks import check_kind
from hbfp.golden.nn.forms import patterns
from hbfp.golden.nn.side import sided
from hbfp.golden.ops.optimisers import GRADIENT, PARAMETER, Update, start
from hbfp.golden.schedule import MixedMantissa
from hbfp.isa.instructions import ARGUMENTS, Instruction
from hbfp.program import Layer, Product, Program
from hbfp.system import Accelerator

from ..builder import Builder
from ..errors import NO_OPERATION, LoweringError
from ..formats import check_formats
from ..graph import Graph, needed, refusal
from ..lowering import Lowered, finished
from ..memory import Value
from ..network import Network
from ..operations.tables import BY_NUMBER, Choice
from ..schedule import Span
from ..tensors import channels_last
from . import updates
from .beside import BESIDE, Beside
from .capture import Batch, Capture, captured
from .layers import layers
from .masks import computes
from .reference import Loss, Make, Plan, Reference
from .space import Space, crowded
from .updates import NEXT, PLACE

#: Places in DRAM for what comes with a step; a host may write the next batch during a step.
PLACES = 2
#: The tensor that has the optimiser's numbers, where they are too many for arguments.
NUMBERS = "numbers"


class OneProgram:
    """A training whose steps are all one program."""
    lowered: Lowered
    place: range

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

    @property
    def kept(self) -> range:
        """Bytes of DRAM that a step finds as the one before, and the host, leave them."""
        return range(self.place.start, self.place.start + PLACES * len(self.place))

    def shift(self, name: str, arguments: Sequence[int]) -> int:
        """Bytes by which a tensor lies behind its address in a step whose arguments these are; less than 0 for one
        that lies before it.
        """
        address, further = self.lowered.program.tensors[name].address, arguments[PLACE - 1]
        behind = range(self.place.stop, self.kept.stop)
        return further if address in self.place else -further if address in behind else 0


@dataclass
class Step(OneProgram):
    """A step of training as a program, and PyTorch beside it.

    Attributes
    ----------
    lowered : Lowered
        The program; parameters, state and the first batch are in its memory. ``expected`` is of the first step.
    reference : Reference
        PyTorch, before its first step.
    host : Host
        What a host writes for each batch.
    place : range
        Bytes of DRAM that are the first of :data:`PLACES` for a batch, parameters and state; the second follows.
    inner : mapping
        Node of the capture -> name of the program's tensor, of what layers give that no step changes for good.
    """
    lowered: Lowered
    reference: Reference
    host: "Host"
    place: range
    inner: Mapping[fx.Node, str] = field(default_factory=dict)

    @property
    def losses(self) -> list[str]:
        """What the program calls the loss."""
        return ["loss"]

    @property
    def key(self) -> int:
        """What the register ``seed`` has in the next step."""
        return self.reference.key

    def writes(self, batch: Batch) -> dict[str, np.ndarray]:
        """Name of a tensor of the program -> what a host writes there for the next step; errors of :class:`Host`."""
        return self.host.writes(batch) | numbers(self.lowered.program, self.reference.values())

    def instructions(self, batch: Batch) -> dict[int, Instruction]:
        """What :meth:`Host.instructions` gives."""
        return self.host.instructions(batch)

    def arguments(self) -> tuple[int, ...]:
        """What the next step's program is told: how far behind the first place it begins, and how far before the second
        it ends, modulo 2^32; and numbers. A step that was stopped, or has failed, is done again with the same.

        Raises
        ------
        LoweringError
            If the optimiser's options have changed otherwise than by learning rates.
        """
        told = () if NUMBERS in self.lowered.program.tensors else self.reference.values()
        return *turn(self.reference.steps, self.place), *told

    def layers(self, batch: Batch) -> dict[str, np.ndarray]:
        """Name of each tensor that a layer of the next step gives, forward and backward -> its numbers, by torch's
        graph of the step. They are those of :attr:`Lowered.expected` in the first step.
        """
        return self._laid(layers(self.host.capture, self.reference, self.inner, batch))

    def _laid(self, tensors):
        """Tensors as the program has them."""
        orders = self.lowered.orders
        return {name: each.float().permute(orders[name]).contiguous().numpy() for name, each in tensors.items()}

    def advance(self, batch: Batch) -> dict[str, np.ndarray]:
        """Let PyTorch do a step: name of each tensor of the program that it changes -> its numbers."""
        loss = self.reference.step(*batch)
        return self._laid(self.reference.expected(loss, self.host.capture.buffers))


def turn(step: int, place: range) -> tuple[int, int]:
    """The first two arguments of a step, counted from 0."""
    further = step % PLACES * len(place)
    return further, -further % (1 << 32)


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
    table: Value | None = None
    place: range = range(0)
    states: dict[tuple[str, str], Value] = field(default_factory=dict)
    overlaps: bool = True
    space: Space | None = None
    beside: Beside | None = None
    updated: set[str] = field(default_factory=set)

    @cached_property
    def nodes(self) -> dict[str, fx.Node]:
        """Name -> node, of the step's inputs and results."""
        return {name: node for node, name in self.graph.inputs.items()} | dict(self.results)

    @property
    def further(self) -> int:
        """Elements from the first place of what comes with a step to the second."""
        return len(self.place) // 4

    def name(self, node: fx.Node) -> str:
        return self.names.get(node) or super().name(node)

    def order(self, node: fx.Node) -> list[int]:
        """What follows from a batch, such as a mask, has no channels."""
        follows = node in self.whole and node.op != "placeholder"
        return list(range(self.graph.results[node].dim())) if follows else super().order(node)

    def before(self, node: fx.Node) -> Iterator[Layer]:
        if self.beside is not None:
            yield from self.beside.before(node)

    def behind(self, node: fx.Node, last: fx.Node, made: tuple[Product, ...]) -> None:
        if self.beside is not None:
            self.beside.behind(node, last, made)
        if self.space is not None:
            self.space.give_back(self.beside is None or not self.beside.held)

    def copied(self, name: str) -> str:
        return name

    def copying(self, name: str) -> str:
        return f"backward {name}"

    def title(self, name: str) -> str:
        part, _, rest = name.partition(" ")
        return f"{part} {self.prefix}{rest}"

    def put(self) -> None:
        """Put what comes with a step into DRAM: its batch, parameters, state and buffers."""
        for node, name in self.graph.inputs.items():
            if name in self.given or name in self.updates or name in self.buffers:
                self.value(node)
        for name, each in self.updates.items():
            shape = self.graph.results[self.nodes[name]].shape
            for kept in each.state:
                self.states[name, kept] = self.build.dram.constant(np.full(shape, start(kept), np.float32),
                                                                   channels_last(len(shape)))

    def layer_by_layer(self) -> Iterator[Layer]:
        if self.number is None:                            # models of a job take turns in one DRAM
            self.space = Space(self) if crowded(self) else None
            self.beside = Beside(self) if self.overlaps else None
        yield from super().layer_by_layer()
        for name, node in self.results.items():            # parameters of which only the sum is read have one gradient
            own = self.names[node]
            self.tensors[name], self.orders[name] = self.tensors[own], self.orders[own]
            if own in self.expected:
                self.expected[name] = self.expected[own]
        if self.beside is not None:
            yield from self.beside.rest()
        for name in self.updates:
            if name not in self.updated:
                first = len(self.build.schedule.instructions)
                self.update(name)
                self.layers.append(Layer(f"update {name}", first, len(self.build.schedule.instructions)))
                yield self.layers[-1]
        for name, new in self.buffers.items():
            self.build.schedule.kind = "update"
            first, value = len(self.build.schedule.instructions), self.value(self.nodes[name]).further(self.further)
            self.copy(self.value(self.nodes[new]), value)
            self._known(f"{name} after", value, self.graph.results[self.nodes[new]], "output")
            self.layers.append(Layer(f"update {name}", first, len(self.build.schedule.instructions)))
            yield self.layers[-1]

    def update(self, name: str) -> None:
        """Lower the step of the optimiser of a parameter, whose gradient is there."""
        self.updated.add(name)
        self.build.schedule.kind = "update"
        each = self.updates[name]
        parts = {PARAMETER: self.nodes[name], GRADIENT: self.nodes[f"{name} gradient"]}
        values = {part: self.value(node) for part, node in parts.items()}
        numbers = {part: self.graph.results[node] for part, node in parts.items()}
        for kept in each.state:
            numbers[kept] = torch.full_like(numbers[PARAMETER], start(kept))
            values[kept] = self.states[name, kept]
            self._known(f"{name} {kept}", values[kept], numbers[kept], "input")
        try:
            updates.lowered(self.build, each, values, self.arguments, self.further, self.table)
        except LoweringError as error:
            raise LoweringError(f"The update of {name} cannot be lowered: {error}") from None
        self.build.end_layer()
        for part, result in self._after(each, numbers).items():
            own = name if part == PARAMETER else f"{name} {part}"
            self._known(f"{own} after", values[part].further(self.further), result, "output")

    def _after(self, each, numbers):
        """What an update makes of numbers, by part; without values where they have none."""
        kept = (PARAMETER, *each.state)
        if numbers[PARAMETER].is_meta:
            return {part: numbers[part] for part in kept}
        given = {part: patterns(number.detach()) for part, number in numbers.items()}
        return {part: torch.from_numpy(result.view(np.float32))
                for part, result in updates.told(each, self.arguments).results(given).items()}

    def _known(self, name, value, result, role):
        self.known_as(name, value, result, channels_last(result.dim()), role)


def lower_step(model: torch.nn.Module, loss: Loss, optimiser: Make, batch: Batch, accelerator: Accelerator, *,
               stochastic: Sequence[str] = (), seed: int = 1, plan: Plan | None = None, clip: float | None = None,
               mixed: MixedMantissa | None = None, epoch: int = 0, values: bool = True) -> Step:
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
    values : bool
        Whether memory and what is expected have numbers; without them the same instructions are there sooner, for the
        cycle model.

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
    check_formats(model, batch[0], accelerator)
    reference = Reference(model, loss, optimiser, accelerator, stochastic, seed, plan, clip)
    if mixed is not None:
        reference.begin_epoch(mixed, epoch)
    made = Made(reference, batch, values=values)
    lowered, place = program_of(accelerator, [made])
    return made.step(lowered, place)


class Made:
    """A model of a step that has no program yet.

    Parameters
    ----------
    reference : Reference
    batch : (tuple, tuple)
        The first.
    number : int or None
        The model's own in a job.
    values : bool
        As of :func:`lower_step`.
    """

    def __init__(self, reference: Reference, batch: Batch, number: int | None = None, values: bool = True) -> None:
        self.reference, self.number, self.first, self.values = reference, number, batch, values
        self.prefix = "" if number is None else f"{number}/"
        self.capture = captured(reference, batch)
        self.graph, self.moved, self.whole = _evaluated(self.capture, reference.side, values)
        self.graph.inputs = {node: self.prefix + name for node, name in self.graph.inputs.items()}
        self.own: _Network | None = None

    def network(self, build: Builder, arguments: Sequence[int], overlaps: bool) -> _Network:
        """The model on its way into a program that is told these arguments in the first step."""
        capture = self.capture
        results = {self.prefix + name: node for name, node in capture.outputs.items()}
        names = {node: name for name, node in results.items()} | self.graph.inputs
        self.own = _Network(
            self.graph, build, self.number, whole=self.whole, names=names, results=results, batches=True,
            updates={self.prefix + name: each for name, each in self.reference.updates().items()},
            buffers={self.prefix + name: self.prefix + new for name, new in capture.buffers.items()},
            arguments=arguments, overlaps=overlaps,
            given={self.prefix + name for name in (*capture.leaves(self.first), *self.moved.values())})
        return self.own

    def step(self, lowered: Lowered, place: range) -> Step:
        """The model's own step, once the program is there."""
        assert self.own is not None
        orders = {name.removeprefix(self.prefix): order for name, order in self.own.orders.items()}
        host = Host(self.capture, self.moved, orders, lowered.program, self.own.choices)
        host.writes(self.first)
        own, tensors = {self.own.name(node): node for node in self.graph.nodes}, lowered.program.tensors
        inner = {own[name]: name for name, tensor in tensors.items() if tensor.role == "inner" and name in own}
        return Step(lowered, self.reference, host, place, inner)


def program_of(accelerator: Accelerator, several: Sequence[Made]) -> tuple[Lowered, range]:
    """One program of steps of several models, and the bytes of DRAM that are the first place of what comes with one.

    What optimisers tell it are arguments if there are enough, and else numbers in DRAM, which come with a batch.
    """
    overlaps = len(several) == 1 and accelerator.v_words >= BESIDE
    try:
        return _program_of(accelerator, several, overlaps)
    except LoweringError:                                  # it may need all of V
        if not overlaps:
            raise
        return _program_of(accelerator, several, False)


def _program_of(accelerator, several, overlaps):
    """The same, with gradients of weights beside other layers or without."""
    build = Builder(accelerator, several[0].values)
    told = [word for each in several for word in each.reference.values()]
    arguments = (*turn(0, range(0)), *told)
    networks, dram = [each.network(build, arguments, overlaps) for each in several], build.dram
    first, table = dram.page(), None
    for each in networks:
        each.put()
    if len(arguments) > ARGUMENTS:
        table = dram.constant(_floats(told))
        for each in networks:
            each.table = table
        networks[0].known_as(NUMBERS, table, torch.from_numpy(_floats(told)), [0, 1], "input")
    place = range(first, dram.page())
    size = (PLACES - 1) * len(place) // 4
    dram.zeros(dram.home(1, size, size))                   # what fills up words is zeros there, too
    build.schedule.moved = [(Span("DRAM", first, place.stop), PLACE),
                            (Span("DRAM", place.stop, place.stop + len(place)), NEXT)]
    for each in networks:
        each.place = place
    lowered = finished(build, networks)
    lowered.program = replace(lowered.program, arguments=arguments if table is None else arguments[:NEXT])
    return lowered, place


def numbers(program: Program, told: Sequence[int]) -> dict[str, np.ndarray]:
    """What a host writes of the numbers that optimisers tell a program; nothing if they are arguments."""
    return {NUMBERS: _floats(told)} if NUMBERS in program.tensors else {}


def _floats(told):
    """Bit patterns as a column of numbers."""
    return np.array(told, np.uint32).view(np.float32)[:, None]


def _evaluated(capture, side, values):
    """The graph with what each node gives in the first step, or without ``values`` its shape; its inputs and all nodes
    that whole numbers decide.
    """
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
                    results[node] = _called(node, args, options)
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
