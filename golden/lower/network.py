"""A model on its way into a program: its nodes become layers, in order."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import torch
from torch import fx

from hbfp.golden.ops.operation import Shape
from hbfp.golden.ops.table import operation_of
from hbfp.golden.vector import waves
from hbfp.program import Layer, Product, Tensor

from .became import Became, became
from .beneath import Beneath
from .errors import NO_OPERATION, LoweringError, broken, instead
from .graph import is_real, kind, named, place, refusal
from .memory import Value
from .nodes import Nodes
from .operations.table import handler_of
from .operations.vector import elementwise
from .same import CASTS, spared
from .tensors import channels_last, first_of
from .views import is_view, seen

#: Integers that a program has as FP32 numbers, and operations of which it computes with them.
WHOLE = (torch.int64, torch.int32)
OF_WHOLE = ("add", "sub", "mul", "neg", "abs", "maximum", "minimum", "where", "clamp", "cat", "stack")

#: What is said of a model that torch's graph of it is not.
DIFFERENT = ("The model cannot be lowered: it gives other numbers than torch's graph of it; a forward that always does "
             "the same would do")


@dataclass
class Network(Nodes):
    """A model, the layers that it has become, the names of the tensors that it returns, and nodes that took a turn.

    ``became`` has what each node became, in order, and ``owners`` the nodes that others were lowered with.
    """
    layers: list[Layer] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    turns: set[fx.Node] = field(default_factory=set)
    beneath: Beneath | None = None
    became: list[Became] = field(default_factory=list)
    owners: dict[fx.Node, fx.Node] = field(default_factory=dict)

    def layer_by_layer(self) -> Iterator[Layer]:
        """Lower all nodes, in order, and give each layer when its instructions are there.

        Raises
        ------
        LoweringError
            If a node cannot be lowered, or the model gives other numbers than its graph.
        """
        for node in self.graph.nodes:
            yield from self.before(node)
            if self.beneath is not None:
                self.beneath.before(node)
            if (layer := self.there(node)) is not None:
                yield from layer
                continue
            self.build.schedule.kind = f"{place(node).partition(' ')[0]} {kind(node)}"
            first, waiting = len(self.build.schedule.instructions), len(self.build.waiting or ())
            try:
                last, made = self._node(node)
            except LoweringError as error:
                why = str(error) if self.batches or self.number is not None else instead(place(node), str(error))
                raise LoweringError(f"{of_the_job(self.number)}{refusal(node, why)}") from None
            except Exception as error:
                raise LoweringError(f"{of_the_job(self.number)}{refusal(node, broken(error))}") from error
            self.build.end_layer()
            self.behind(node, last, made)
            own, products = (node, made) if self.beneath is None else self.beneath.behind(node, made)
            stop = len(self.build.schedule.instructions)
            self._note(node, own, first, stop, made)
            node, made = own, products
            if stop > first:
                name = self.title(place(node) or named(last))
                used = {layer.name for layer in self.layers}
                self.layers.append(Layer(name if name not in used else f"{name} {named(last)}", first, stop,
                                         sum(each.macs for each in made), made))
            put_off = (self.build.waiting or [])[waiting:]
            for each in put_off:
                each.name = place(node) or named(last)
            if stop > first or put_off:
                self.turns.add(node)
                yield Layer(self.title(place(node) or named(last)), first, stop)
        self.outputs = [self._output(node) for node in self.graph.outputs]
        self._compare()

    def before(self, node: fx.Node) -> Iterator[Layer]:
        """What is done before a node is lowered, and the layers that this makes: a step of training has some."""
        yield from ()

    def there(self, node: fx.Node) -> Sequence[Layer] | None:
        """Whether a node's result is there without instructions of its own; then the turn that is left out, if any."""
        return None

    def behind(self, node: fx.Node, last: fx.Node, made: tuple[Product, ...]) -> None:
        """The same behind it: ``last`` of those that were lowered with it, and the products that it has become."""

    def _note(self, node, layer, first, stop, made):
        """Note what a node became, whose instructions are the node ``layer``'s; those lowered with it are its, too."""
        self.owners |= dict.fromkeys(self.done - self.owners.keys(), node)
        if layer is not node:                              # it stands beneath the one before
            self.became[-1], self.owners[node], first = replace(self.became[-1], first=first, stop=stop), layer, stop
        owner = self.owners.get(node)
        self.became.append(became(node, self.name(node), map(self.name, node.all_input_nodes), self.graph.results[node],
                                  "" if owner is None else self.name(owner), first, stop, made))

    def _output(self, node):
        """Make a node's result an output, a tensor of its own, and give its name."""
        value = self.value(node)
        if node.target is operator.getitem and self.values.get(node.args[0]) is value:    # the first of several
            node = node.args[0]
        name = self.name(node)
        result = first_of(self.graph.results[node])
        if name not in self.tensors:
            first = len(self.build.schedule.instructions)
            name = self.copied(name)
            fresh = self.build.dram.empty(result.shape, channels_last(result.dim()))
            self.copy(value, fresh)
            self.known_as(name, fresh, result, channels_last(result.dim()), "output")
            self.layers.append(Layer(self.copying(name), first, len(self.build.schedule.instructions)))
            self.became.append(Became(name, "", "copy", (self.name(node),), (tuple(result.shape),), "", first,
                                      self.layers[-1].stop))
        tensor = self.tensors[name]
        self.tensors[name] = Tensor(tensor.address, tensor.shape, tensor.layout, "output", tensor.row)
        return name

    def title(self, name: str) -> str:
        """What a layer of the model is called in the program."""
        return self.prefix + name

    def copied(self, name: str) -> str:
        """The name of an output that is a copy of the result called ``name``."""
        return f"{name}_output"

    def copying(self, name: str) -> str:
        """The name of the layer that makes the output ``name`` by copying."""
        return name

    def _compare(self):
        """Expect of each output what the model itself gives, and refuse a graph that gives anything else."""
        for node, name, wanted in zip_longest(self.graph.outputs, self.outputs, self.graph.wanted):
            if wanted is not None and wanted.is_meta:
                continue
            if node is None or wanted is None or differ(self.graph.results[node], wanted):
                raise LoweringError(f"{of_the_job(self.number)}{DIFFERENT}")
            self.expected[name] = wanted.float().permute(self.orders[name]).contiguous().numpy()

    def _node(self, node):
        """Lower a node, and those behind it that go with it: the last of them, and its products."""
        self._check(node)
        if node in self.done:
            return node, ()
        if (pair := spared(node)) is not None:
            softmax, mask = pair
            if self.graph.results[mask].any():
                raise LoweringError("a row of its softmax takes part in nothing and has no numbers on the accelerator; "
                                    "a mask with something for every row would do")
            self.values[node] = self.value(softmax)
            return node, ()
        if node.target in CASTS:
            if not self.graph.results[node.args[0]].is_floating_point():
                self.values[node] = self.value(node.args[0])               # FP32 numbers already
                return node, ()
            return elementwise(self, node, waves.cut(), self.value(node.args[0]))
        if is_view(node.target):
            if not self._left_out(node):
                self.values[node] = self._view(node)
            return node, ()
        return handler_of(node.target)(self, node)

    def _check(self, node):
        """Refuse what has no form here, or gives anything but numbers of float32."""
        operation = operation_of(node.target)
        results = torch.utils._pytree.tree_leaves(self.graph.results[node])
        results = results[:1] if operation and operation.kept else results       # the rest is for gradients
        kinds = [getattr(each, "dtype", type(each)) for each in results]
        known = (node in self.done or spared(node) or is_view(node.target) or node.target in CASTS or
                 handler_of(node.target))
        given = [self.graph.results[each] for each in node.all_input_nodes]
        whole = node.target in CASTS or operation is not None and operation.name in OF_WHOLE or \
            is_view(node.target) and not any(map(is_real, given))
        fit = {torch.float32, *([torch.bool] if operation is not None and operation.truth else ()),
               *(WHOLE if whole else ())}
        if operation is not None and operation.shape == Shape.ELEMENT and operation.name not in OF_WHOLE and \
                not operation.truth and given and not any(map(is_real, given)):
            raise LoweringError("it takes whole numbers alone; numbers of float32 would do")
        for each in kinds:
            if each not in fit and (known or getattr(each, "is_floating_point", False)):
                what = getattr(each, "__name__", str(each)).removeprefix("torch.")
                raise LoweringError(f"it gives {what}; numbers of float32 would do")
        if not known:
            raise LoweringError(NO_OPERATION)
        if not results[0].numel() and not self._left_out(node):
            raise LoweringError(f"it gives no numbers: its shape is {tuple(results[0].shape)}; one of numbers would do")

    def _left_out(self, node):
        """Whether a node is a view without numbers, which what joins it with others leaves out."""
        result, users = self.graph.results[node], self.users(node)
        return is_view(node.target) and isinstance(result, torch.Tensor) and not result.numel() and bool(users) and all(
            user.target == torch.ops.aten.cat.default for user in users)

    def _view(self, node):
        """A view, after a copy if there is none of what lies in DRAM."""
        operand, *rest = node.args
        if node.target is operator.getitem:
            source = self.values[operand]
            if not isinstance(source, Value):
                return source[rest[0]]
            if rest != [0]:
                raise LoweringError(f"the accelerator gives the first result alone, not number {rest[0]}")
            return source
        source, given = self.value(operand), self.graph.results[operand]
        try:
            return seen(node.target, rest, node.kwargs, source, given)
        except RuntimeError:
            try:
                return seen(node.target, rest, node.kwargs, self.contiguous(source), given)
            except RuntimeError:
                raise LoweringError(NO_OPERATION) from None


def of_the_job(number: int | None) -> str:
    """What stands before a message about a model of a job."""
    return "" if number is None else f"Model {number} of the job: "


def differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors differ in shape, type, or a bit."""
    return one.shape != other.shape or one.dtype != other.dtype or \
        one.contiguous().numpy().tobytes() != other.contiguous().numpy().tobytes()
