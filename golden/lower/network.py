"""A model on its way into a program: its nodes become layers, in order."""

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field

from hbfp.program import Layer, Tensor

from .errors import LoweringError
from .graph import aten, kind, masked, place
from .memory import Value
from .nodes import Nodes
from .operations.table import handler_of
from .tensors import channels_last


@dataclass
class Network(Nodes):
    """A model, the layers that it has become, and the names of the tensors that it returns."""
    layers: list[Layer] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def layer_by_layer(self) -> Iterator[Layer]:
        """Lower all nodes, in order, and give each layer when its instructions are there."""
        for node in self.graph.nodes:
            if node in self.done:
                continue
            first = len(self.build.schedule.instructions)
            try:
                last, made = self._node(node)
            except LoweringError as error:
                raise LoweringError(f"{of_the_job(self.number)}Layer {place(node)!r} ({kind(node)}) cannot be lowered: "
                                    f"{error}") from None
            self.build.end_layer()
            stop = len(self.build.schedule.instructions)
            if stop > first:
                name = self.prefix + (place(node) or last.name)
                used = {layer.name for layer in self.layers}
                self.layers.append(Layer(name if name not in used else f"{name} {last.name}", first, stop,
                                         sum(each.macs for each in made), made))
                yield self.layers[-1]
        self.outputs = [self._output(node) for node in self.graph.outputs]

    def _output(self, node):
        """Make a node's result an output, a tensor of its own, and give its name."""
        value = self.value(node)
        name = self.name(node)
        if name not in self.tensors:
            first = len(self.build.schedule.instructions)
            name = f"{name}_output"
            result = self.graph.results[node]
            fresh = self.build.dram.empty(result.shape, channels_last(result.dim()))
            self.copy(value, fresh)
            self.known_as(name, fresh, result, channels_last(result.dim()), "output")
            self.layers.append(Layer(name, first, len(self.build.schedule.instructions)))
        tensor = self.tensors[name]
        self.tensors[name] = Tensor(tensor.address, tensor.shape, tensor.layout, "output", tensor.row)
        return name

    def _node(self, node):
        """Lower a node, and those behind it that go with it: the last of them, and its products."""
        if (source := masked(node)) is not None:
            self.values[node] = self.value(source)
            return node, ()
        if _is_view(node.target):
            self.values[node] = self._view(node)
            return node, ()
        handler = handler_of(node.target)
        if handler is None:
            raise LoweringError("the accelerator has no such operation; a model without it, or exclude it and run that "
                                "part on the host, would do")
        return handler(self, node)

    def _view(self, node):
        """A view, after a copy if there is none of what lies in DRAM."""
        if node.target is operator.getitem:
            source = self.values[node.args[0]]
            return source if isinstance(source, Value) else source[node.args[1]]
        source = self.value(node.args[0])
        try:
            return self._seen(node, source)
        except RuntimeError:
            return self._seen(node, self.contiguous(source))

    @staticmethod
    def _seen(node, source):
        found = node.target(source.where, *node.args[1:], **node.kwargs)
        if isinstance(found, (tuple, list)):
            return [Value(part, source.home) for part in found]
        if found.untyped_storage()._cdata != source.where.untyped_storage()._cdata:
            raise RuntimeError("a copy")
        return Value(found, source.home)


def of_the_job(number: int | None) -> str:
    """What stands before a message about a model of a job."""
    return "" if number is None else f"Model {number} of the job: "


def _is_view(target):
    """Whether an operation gives a view of its first operand, at least where there is one."""
    if target in (operator.getitem, aten._unsafe_view.default):
        return True
    returned = target._schema.returns[0].alias_info
    return returned is not None and not returned.is_write
