"""A step on its way into a program: what it keeps in DRAM, its layers, and the updates behind them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import fx

from hbfp.golden.nn.forms import patterns
from hbfp.golden.ops.optimisers import GRADIENT, PARAMETER, Update, start
from hbfp.isa.instructions import ARGUMENTS
from hbfp.program import Layer, Product
from hbfp.system import Accelerator

from ..builder import Builder
from ..errors import LoweringError
from ..graph import named
from ..lowering import Lowered, finished
from ..memory import Value
from ..network import Network
from ..reordered import reordered
from ..schedule import Span
from ..tensors import channels_last
from ..unread import without_unread
from . import updates
from .beside import BESIDE, Beside
from .one_program import NUMBERS, PLACES, floats, turn
from .shared import follows, same
from .space import Space, crowded
from .updates import NEXT, PLACE

if TYPE_CHECKING:
    from .step import Made


@dataclass
class StepNetwork(Network):
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
    apart: Collection[str] = ()
    space: Space | None = None
    beside: Beside | None = None
    updated: set[str] = field(default_factory=set)
    like: "StepNetwork | None" = None
    twins: dict[fx.Node, fx.Node] = field(default_factory=dict)

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
                self._shared(node, name)
                self.value(node)
        for name, each in self.updates.items():
            shape = self.graph.results[self.nodes[name]].shape
            for kept in each.state:
                self.states[name, kept] = self.build.dram.constant(np.full(shape, start(kept), np.float32),
                                                                   channels_last(len(shape)))

    def _shared(self, node, name):
        """Let an input of a batch lie where the model ``like`` has it, if that has the same."""
        if self.like is None or name not in self.given:
            return
        other = self.like.nodes.get(self.like.prefix + name.removeprefix(self.prefix))
        if other is None or not same(node, self.graph, other, self.like.graph):
            return
        self.twins[node] = other
        self.values[node] = self.like.value(other)
        self.known_as(name, self.values[node], self.graph.results[node], self.order(node), "input")

    def there(self, node: fx.Node) -> Sequence[Layer] | None:
        """What follows from a batch alone that models share is done once, by the model ``like``."""
        if self.like is None or node in self.done or not follows(node, self.graph, self.twins, self.like.graph):
            return None
        other = self.twins[node]
        if not isinstance(value := self.like.values.get(other), Value):
            return None
        self.values[node] = value
        if (name := self.like.name(other)) in self.like.tensors and self.like.tensors[name].role == "inner":
            self.known_as(self.name(node), value, self.graph.results[node], self.like.orders[name], "inner")
        here = len(self.build.schedule.instructions)
        return [Layer(self.title(named(node)), here, here)] if other in self.like.turns else []

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
                layer = Layer(f"update {name}", first, len(self.build.schedule.instructions))
                if layer.stop > first:
                    self.layers.append(layer)
                yield layer
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
            updates.lowered(self.build, each, values, self.arguments, self.further, self.table,
                            f"update {name.removeprefix(self.prefix)}")
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


def program_of(accelerator: Accelerator, several: Sequence["Made"], shared: bool = False, reorders: bool = False,
               layers: bool = True) -> tuple[Lowered, range]:
    """One program of steps of several models, and the bytes of DRAM that are the first place of what comes with one.

    What optimisers tell it are arguments if there are enough, and else numbers in DRAM, which come with a batch. A
    batch that is ``shared`` is there once. ``reorders`` and ``layers`` as of
    :func:`~.job.lower_job_step`.
    """
    overlaps = len(several) == 1 and accelerator.v_words >= BESIDE
    try:
        return _program_of(accelerator, several, overlaps, shared, reorders, layers)
    except LoweringError:                                  # it may need all of V
        if not overlaps:
            raise
        return _program_of(accelerator, several, False, shared, reorders, layers)


def _program_of(accelerator, several, overlaps, shared, reorders, layers):
    """The same, with gradients of weights beside other layers or without."""
    build = Builder(accelerator, several[0].values, holds=True)
    told = [word for each in several for word in each.reference.values()]
    arguments = (*turn(0, range(0)), *told)
    networks, dram = [each.network(build, arguments, overlaps) for each in several], build.dram
    first, table = dram.page(), None
    for each in networks:
        each.like = networks[0] if shared and each is not networks[0] else None
        each.put()
    if len(arguments) > ARGUMENTS:
        table = dram.constant(floats(told))
        for each in networks:
            each.table = table
        networks[0].known_as(NUMBERS, table, torch.from_numpy(floats(told)), [0, 1], "input")
    place = range(first, dram.page())
    size = (PLACES - 1) * len(place) // 4
    dram.zeros(dram.home(1, size, size))                   # what fills up words is zeros there, too
    build.schedule.moved = [(Span("DRAM", first, place.stop), PLACE),
                            (Span("DRAM", place.stop, place.stop + len(place)), NEXT)]
    for each in networks:
        each.place = place
    build.schedule.emitted = [] if reorders else None
    lowered = finished(build, networks)
    if reorders:
        emitted, gone = build.schedule.emitted or [], set[str]()
        if not layers:
            emitted, gone = without_unread(lowered.program, emitted)
        found, schedule = reordered(lowered.program, emitted, build.schedule)
        tensors = {name: each for name, each in found.program.tensors.items() if name not in gone}
        lowered.program, lowered.kinds = replace(found.program, tensors=tensors), tuple(schedule.kinds)
        lowered.expected = {name: each for name, each in lowered.expected.items() if name not in gone}
        for each in networks:
            each.choices = [replace(choice, instruction=int(found.numbers[choice.instruction]))
                            for choice in each.choices]
    lowered.program = replace(lowered.program, arguments=arguments if table is None else arguments[:NEXT])
    return lowered, place
