"""From a model to a program of the accelerator, layer by layer."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import fx

from hbfp.golden import vector_programs as programs
from hbfp.golden.nn.side import FUNCTIONS, norm_factors, pair
from hbfp.program import Layer, Product, Program, Tensor
from hbfp.system import Accelerator

from . import products, vectors
from .builder import Builder
from .errors import LoweringError
from .graph import aten, kind, masked, place, traced
from .memory import Value, located
from .products import Steps, Weights

hbfp = torch.ops.hbfp
#: Batch norms: which of their arguments is eps.
_NORMS = {aten.batch_norm.default: 7, aten._native_batch_norm_legit_no_training.default: 6}
#: Functions that make zeros of zeros.
_KEEP_ZEROS = ("relu", "gelu", "silu", "tanh")


@dataclass
class Lowered:
    """A program, and what it has to compute.

    Attributes
    ----------
    program : Program
        Inputs and weights are in its memory.
    expected : dict
        Name of a tensor of the program -> float32 array of the tensor's shape: what PyTorch computes after
        ``golden.nn.convert(model, ..., side=Side.of(accelerator))``. All outputs, and what each layer gives.
    orders : dict
        Name -> the dimensions of torch's tensor, in the order in which the program has them.
    outputs : list of str
        Tensors that the model returns, in its order.
    """
    program: Program
    expected: dict[str, np.ndarray]
    orders: dict[str, list[int]]
    outputs: list[str]

    def torch_order(self, name: str, values: np.ndarray) -> np.ndarray:
        """A tensor of the program as torch has it."""
        return values.transpose(np.argsort(self.orders[name]))


def lower(model: torch.nn.Module, inputs: tuple[Any, ...], accelerator: Accelerator) -> Lowered:
    """The program of a model in evaluation for given inputs.

    Parameters
    ----------
    model : torch.nn.Module
        In float32; it stays as it is. If :func:`golden.nn.convert` has converted it, then to the accelerator's formats.
    inputs : tuple
        What its ``forward`` takes. Integers, such as indices of an embedding, become part of the program.
    accelerator : Accelerator

    Raises
    ------
    LoweringError
        If a layer cannot be lowered, or has a format of its own; one line with the layer's name, why, and what would
        work.
    """
    build = Builder(accelerator)
    return _lowered(build, [_Lowering(traced(model, inputs, accelerator), build)])


def lower_job(models: Sequence[torch.nn.Module], inputs: Sequence[tuple[Any, ...]], accelerator: Accelerator
              ) -> Lowered:
    """One program of several models, each with the bits that it has alone, without a host between them.

    They take turns layer by layer, so that one loads and converts while another multiplies.

    Parameters
    ----------
    models : sequence of torch.nn.Module
        As of :func:`lower`; of one architecture or of several.
    inputs : sequence of tuple
        Of each model.
    accelerator : Accelerator

    Returns
    -------
    Lowered
        Tensors and layers of model n have ``n/`` before their names; ``outputs`` are those of all models, in order.

    Raises
    ------
    LoweringError
        As of :func:`lower`, with the model's number before it.
    """
    build, parts = Builder(accelerator), []
    for number, (model, given) in enumerate(zip(models, inputs, strict=True)):
        try:
            parts.append(_Lowering(traced(model, given, accelerator), build, number))
        except ValueError as error:
            raise LoweringError(f"{_title(number)}{error}") from error
    return _lowered(build, parts)


def _title(number):
    """What stands before a message about a model of a job."""
    return "" if number is None else f"Model {number} of the job: "


def _lowered(build, parts):
    """The program of models, and what it has to compute."""
    going = [each.layer_by_layer() for each in parts]
    while going:
        going = [each for each in going if next(each, None)]
    build.schedule.halt()
    layers = sorted((layer for each in parts for layer in each.layers), key=lambda each: each.first)
    program = Program(accelerator=build.accelerator, instructions=tuple(build.schedule.instructions),
                      limit=build.dram.end * 4,
                      memory=tuple(sorted(build.dram.regions, key=lambda each: each.address)),
                      tensors=_united(each.tensors for each in parts), layers=tuple(layers))
    return Lowered(program, _united(each.expected for each in parts), _united(each.orders for each in parts),
                   [name for each in parts for name in each.outputs])


def _united(several):
    """Dictionaries without a common key as one, in order."""
    return {key: value for each in several for key, value in each.items()}


@dataclass
class _Lowering:
    """A model on its way into the program that ``build`` makes; ``number`` is its own in a job."""
    graph: Any
    build: Builder
    number: int | None = None
    values: dict[fx.Node, Any] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    expected: dict[str, np.ndarray] = field(default_factory=dict)
    orders: dict[str, list[int]] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.accelerator = self.build.accelerator
        self.prefix = "" if self.number is None else f"{self.number}/"
        self.done: set[fx.Node] = set()

    def layer_by_layer(self):
        """Lower all nodes, in order, and give each layer when its instructions are there."""
        for node in self.graph.nodes:
            if node in self.done:
                continue
            first = len(self.build.schedule.instructions)
            try:
                last, made = self._node(node)
            except LoweringError as error:
                raise LoweringError(f"{_title(self.number)}Layer {place(node)!r} ({kind(node)}) cannot be lowered: "
                                    f"{error}") from None
            self.build.forget()
            stop = len(self.build.schedule.instructions)
            if stop > first:
                name = self.prefix + (place(node) or last.name)
                used = {layer.name for layer in self.layers}
                self.layers.append(Layer(name if name not in used else f"{name} {last.name}", first, stop,
                                         sum(each.macs for each in made), made))
                yield self.layers[-1]
        self.outputs = [self._output(node) for node in self.graph.outputs]

    # --- Values -----------------------------------------------------------------------------------

    def value(self, node):
        """Where a node's result lies; constants and inputs are put there when they are first asked for."""
        if node not in self.values:
            result = self.graph.results[node]
            order = channels_last(result.dim())
            self.values[node] = self.build.dram.constant(result.detach().float().numpy(), order)
            if node in self.graph.inputs:
                self._name(self.name(node), self.values[node], result, order, "input")
        return self.values[node]

    def constant(self, node):
        """The numbers of a constant operand; None stays None."""
        return None if node is None else self.graph.results[node].detach()

    def name(self, node):
        """What a node's tensor is called."""
        return self.prefix + node.name

    def _name(self, name, value, result, order, role):
        """Make a tensor known under a name."""
        result = result[0] if isinstance(result, (tuple, list)) else result
        laid = result.permute(order)
        self.orders[name] = list(order)
        self.tensors[name] = Tensor(4 * value.address, tuple(laid.shape), "word", role)
        self.expected[name] = laid.contiguous().numpy()

    def fresh(self, node, order=None):
        """Space for a node's result (the first of them), which gets its name."""
        result = self.graph.results[node]
        result = result[0] if isinstance(result, (tuple, list)) else result
        order = channels_last(result.dim()) if order is None else order
        value = self.build.dram.empty(result.shape, order)
        self.values[node] = value
        self._name(self.name(node), value, result, order, "inner")
        return value

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
            self._name(name, fresh, result, channels_last(result.dim()), "output")
            self.layers.append(Layer(name, first, len(self.build.schedule.instructions)))
        tensor = self.tensors[name]
        self.tensors[name] = Tensor(tensor.address, tensor.shape, tensor.layout, "output", tensor.row)
        return name

    def copy(self, value, target):
        """Copy a tensor into another of its shape."""
        vectors.copy(self.build, value, target)

    def contiguous(self, value):
        """A copy in torch's own order of elements, without gaps."""
        count = int(np.prod(value.shape, dtype=np.int64))
        home = self.build.dram.home(1, count)
        self.build.dram.zeros(home)
        strides, step = [], 1
        for size in reversed(value.shape):
            strides.insert(0, step)
            step *= size
        target = Value(located(value.shape, strides, home.address), home)
        self.copy(value, target)
        return target

    # --- Nodes ------------------------------------------------------------------------------------

    def _node(self, node):
        """Lower a node, and those behind it that go with it: the last of them, and its products."""
        if (source := masked(node)) is not None:
            self.values[node] = self.value(source)
            return node, ()
        if _is_view(node.target):
            self.values[node] = self._view(node)
            return node, ()
        handler = _HANDLERS.get(node.target)
        if handler is None and getattr(node.target, "overloadpacket", None) in FUNCTIONS:
            handler = _function
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

    def follower(self, node, *targets):
        """The one node that uses a node's result, if it is one of ``targets``; else None."""
        users = [user for user in node.users if user in self._live()]
        if len(users) == 1 and users[0].target in targets and users[0].args[0] is node \
                and node not in self.graph.outputs:
            return users[0]
        return None

    def _live(self):
        if not hasattr(self, "_nodes"):
            self._nodes = set(self.graph.nodes)
        return self._nodes

    def is_constant(self, node):
        """Whether an operand does not depend on the inputs."""
        return not isinstance(node, fx.Node) or node in self.graph.constants

    # --- Products ---------------------------------------------------------------------------------

    def steps(self, node, channel):
        """What of the nodes behind a product the core does, and the last of those nodes."""
        steps = Steps()
        last = node
        if (user := self.follower(last, hbfp.add_bias.default, aten.add.Tensor)) is not None \
                and len(user.args) == 2 and not user.kwargs and self._bias(user, channel) is not None:
            steps.bias, last = self._bias(user, channel), user
        norm = self.follower(last, *_NORMS)
        if norm is not None and steps.bias is None and channel == 1 and _learned(norm):
            first = self.follower(norm, operator.getitem)
            factor, addend = self.norm(norm)
            steps.scale, steps.bias, last = factor.view(np.float32), addend.view(np.float32), first or norm
        if (user := self.follower(last, aten.relu.default, aten.relu_.default)) is not None:
            steps.relu, last = True, user
        each = node
        while each is not last:
            each = next(iter(user for user in each.users if user in self._live()))
            self.done.add(each)
        return steps, last

    def norm(self, node):
        """Factor and addend of each channel of a batch norm."""
        return norm_factors(*(self.constant(each) for each in node.args[1:5]), node.args[_NORMS[node.target]])

    def _bias(self, node, channel):
        """The addends of each channel that a node adds to a product's result, or None."""
        other = node.args[1]
        if not self.is_constant(other) or not isinstance(other, fx.Node):
            return None
        numbers = self.constant(other)
        dims = self.graph.results[node].dim()
        shape = [1] * (dims - numbers.dim()) + list(numbers.shape)
        full = self.graph.results[node].shape[channel]
        if shape[channel] != full or any(size != 1 for d, size in enumerate(shape) if d != channel % dims):
            return None
        return numbers.reshape(-1).numpy()


def _is_view(target):
    """Whether an operation gives a view of its first operand, at least where there is one."""
    if target in (operator.getitem, aten._unsafe_view.default):
        return True
    returned = target._schema.returns[0].alias_info
    return returned is not None and not returned.is_write


def channels_last(dims: int) -> list[int]:
    """The order in which the dimensions of a tensor lie: of images, channels innermost."""
    return [0, 2, 3, 1] if dims == 4 else list(range(dims))


Handler = Callable[[_Lowering, fx.Node], tuple[fx.Node, tuple[Product, ...]]]


def _linear(self, node):
    x, w = node.args[0], node.args[1]
    value = self.value(x)
    steps, last = self.steps(node, -1)
    result = self.graph.results[node]
    if self.is_constant(w):
        weight = self.constant(w).numpy().T
        weights = products.constant_weights(self.build, weight, len(weight))
    else:
        where = self.value(w)
        weights = Weights(*reversed(where.shape), value=Value(where.where.t(), where.home), by_columns=True)
    products.matrix(self.build, value, weights, steps, self.fresh(last, list(range(result.dim()))))
    return last, (Product(result.numel() // weights.columns, weights.terms, weights.columns),)


def _matmul(self, node):
    a, b = (self.value(each) for each in node.args[:2])
    steps, last = self.steps(node, -1)
    dims = len(a.shape)
    output = self.fresh(last, list(range(dims)))
    for place_ in np.ndindex(*a.shape[:-2]):
        left, right, own = (Value(each.where[place_], each.home) for each in (a, b, output))
        (_, down), (_, along) = right.dims()
        weights = Weights(*right.shape, value=right, by_columns=down == 1 and along != 1)
        products.matrix(self.build, left, weights, steps, own)
        self.build.forget()
    return last, (Product(*a.shape[-2:], b.shape[-1], int(np.prod(a.shape[:-2], dtype=np.int64))),)


def _conv2d(self, node):
    x, w, stride, padding, dilation, groups = node.args[:6]
    if not self.is_constant(w):
        raise LoweringError("its weight depends on the inputs; a constant weight would do")
    weight = self.constant(w).numpy()
    build, fmt = self.build, self.accelerator.core.format
    result = self.graph.results[node]
    steps, last = self.steps(node, 1)
    output = self.fresh(last)
    size, channels = weight.shape[2:], weight.shape[1]
    plain = tuple(size) == (1, 1) and not any(padding)
    gathers = not plain and (groups > 1 or channels % fmt.terms > 0 or fmt.square)
    if not gathers:
        value = self.value(x)
    if groups > 1 and result.shape[1] // groups % build.lanes:
        build.dram.zeros(output.home)
    if gathers:
        value = _bordered(self, x, padding)
    for group in range(groups):
        ins, outs = channels, len(weight) // groups
        own = weight[group * outs:(group + 1) * outs]
        part = value if groups == 1 else Value(value.where[:, group * ins:(group + 1) * ins], value.home)
        target = output if groups == 1 else Value(output.where[:, group * outs:(group + 1) * outs], output.home)
        mine = Steps(*(None if row is None else row[group * outs:(group + 1) * outs]
                       for row in (steps.scale, steps.bias)), steps.relu)
        matrix = own.transpose(2, 3, 1, 0).reshape(-1, outs)
        if plain:
            pixels = part.where[:, :, ::stride[0], ::stride[1]].permute(0, 2, 3, 1)
            weights = products.constant_weights(build, matrix, len(matrix))
            products.matrix(build, Value(pixels, part.home), weights, mine,
                            Value(target.where.permute(0, 2, 3, 1), target.home))
        elif gathers:
            weights = products.constant_weights(build, matrix, len(matrix))
            products.gathered(build, part, weights, mine, target, size, stride, dilation)
        else:
            weights = products.constant_weights(build, matrix, channels)
            products.convolution(build, part, weights, mine, target, size, stride, padding, dilation)
        build.forget()
    return last, (Product(result.numel() // len(weight), weight[0].size, len(weight) // groups, groups),)


def _bordered(self, node, padding):
    """A dense copy of images (N, C, H, W) with zeros around, channels innermost; an input is given as one."""
    result, (ph, pw) = self.graph.results[node], padding
    n, c, h, w = result.shape
    tall, wide = h + 2 * ph, w + 2 * pw
    home = self.build.dram.home(n * tall, wide * c, wide * c)
    where = located((n, c, tall, wide), (tall * wide * c, 1, wide * c, c), home.address)
    if node in self.graph.inputs and node not in self.values and len(node.users) == 1:
        laid = torch.nn.functional.pad(result, (pw, pw, ph, ph)).permute(0, 2, 3, 1).contiguous().numpy()
        self.build.dram.given(home, laid)
        name = self.name(node)
        self.tensors[name] = Tensor(4 * home.address, laid.shape, "dense", "input")
        self.expected[name], self.orders[name] = laid, channels_last(4)
    else:
        self.build.dram.zeros(home)
        self.copy(self.value(node), Value(where[:, :, ph:ph + h, pw:pw + w], home))
    return Value(where, home)


# --- The vector unit ----------------------------------------------------------------------------


def _elements(self, node, program, *operands, keeps_zeros):
    """A program for each element; operands are broadcast."""
    output = self.fresh(node, _order(self, operands, self.graph.results[node]))
    parts = [Value(each.where.expand(output.shape), each.home) for each in operands]
    order = vectors.physical(output)
    flat = keeps_zeros or output.shape[order[-1]] % self.build.lanes == 0
    vectors.by_rows(self.build, program, parts, order, output, flat=flat)
    return node, ()


def _order(self, operands, result):
    """The order of the dimensions of the largest operand."""
    whole = [each for each in operands if each.shape == tuple(result.shape)]
    del self
    return vectors.physical(whole[0]) if whole else channels_last(result.dim())


def _function(self, node):
    name = FUNCTIONS[node.target.overloadpacket]
    if node.kwargs.get("approximate", "none") != "none":
        raise LoweringError(f"approximate={node.kwargs['approximate']!r} has another formula; approximate='none' would "
                            "do")
    return _elements(self, node, programs.activation(name), self.value(node.args[0]), keeps_zeros=name in _KEEP_ZEROS)


def _binary(of_two, of_one, keeps_zeros):
    def handler(self, node):
        a, b = node.args[:2]
        if node.kwargs.get("alpha", 1) != 1:
            raise LoweringError(f"alpha={node.kwargs['alpha']} is another operation; a product before it would do")
        if not isinstance(b, fx.Node):
            return _elements(self, node, of_one(b), self.value(a), keeps_zeros=keeps_zeros)
        if of_two is programs.add and (last := self.follower(node, aten.relu.default)) is not None:
            self.done.add(last)
            return _elements(self, last, programs.add("relu"), self.value(a), self.value(b), keeps_zeros=True)
        return _elements(self, node, of_two(), self.value(a), self.value(b), keeps_zeros=True)
    return handler


def _masked(self, node):
    x, mask, number = node.args
    if not self.is_constant(mask):
        raise LoweringError("its mask depends on the inputs; a constant mask would do")
    shut = self.constant(mask)
    gate = self.build.dram.constant((~shut).float().numpy())
    addend = self.build.dram.constant(torch.where(shut, number, -0.0).numpy())
    return _elements(self, node, programs.choose(), gate, self.value(x), addend, keeps_zeros=True)


def _divide(self, node):
    a, b = node.args[:2]
    if isinstance(b, fx.Node):
        raise LoweringError("division by a tensor takes two operations; multiply by torch.reciprocal of it")
    return _elements(self, node, programs.scale(1 / b), self.value(a), keeps_zeros=True)


def _rows(self, node, program, value, dim):
    """A program for each row along a dimension."""
    dims = len(value.shape)
    order = [d for d in range(dims) if d != dim % dims] + [dim % dims]
    output = self.fresh(node, order)
    _row_fits(self, value.shape[dim])
    vectors.by_rows(self.build, program, [value], order, output)
    return node, ()


def _row_fits(self, length):
    longest = self.accelerator.row_words * self.build.lanes
    if length > longest:
        words = -(-length // self.build.lanes)
        raise LoweringError(f"rows of {length} numbers are longer than the vector unit's {longest}; --row-words "
                            f"{words} would do")


def _softmax(self, node):
    return _rows(self, node, programs.softmax(), self.value(node.args[0]), node.args[1])


def _layer_norm(self, node):
    x, shape, weight, bias = (*node.args, None, None)[:4]
    eps = node.args[4] if len(node.args) > 4 else 1e-5
    if len(shape) != 1:
        raise LoweringError(f"it normalises over {len(shape)} dimensions; over the last alone would do")
    n = shape[0]
    _row_fits(self, n)
    value = self.value(x)
    if weight is None and bias is None:
        return _rows(self, node, programs.layer_norm_plain(n, eps), value, -1)
    gamma = np.ones(n, np.float32) if weight is None else self.constant(weight).numpy()
    beta = np.zeros(n, np.float32) if bias is None else self.constant(bias).numpy()
    vectors.constant_rows(self.build, (gamma, beta))
    return _rows(self, node, programs.layer_norm(n, eps, 1, 2), value, -1)


def _learned(norm):
    """Whether a batch norm has statistics of its own."""
    return norm.target != aten.batch_norm.default or norm.args[3] is not None and not norm.args[5]


def _batch_norm(self, node):
    if not _learned(node):
        raise LoweringError("it takes its statistics from the batch; track_running_stats=True would do")
    factors, value = self.norm(node), self.value(node.args[0])
    dims = len(value.shape)
    order = [d for d in range(dims) if d != 1] + [1]
    _row_fits(self, value.shape[1])
    vectors.constant_rows(self.build, [row.view(np.float32) for row in factors])
    output = self.fresh(node, order)
    vectors.by_rows(self.build, programs.scale_shift(1, 2), [value], order, output)
    return node, ()


def _pool(border, program):
    def handler(self, node):
        x, size, stride, padding, *rest = (*node.args, *((None,) * 4))[:len(node.args) + 4]
        size = pair(size)
        stride, padding = pair(stride or size), pair(padding or 0)
        dilation, ceil = (1, 1), False
        if border:
            dilation, ceil = pair(rest[0] or 1), rest[1]
        else:
            ceil = rest[0]
            counted = True if rest[1] is None else rest[1]
            if rest[2] is not None or any(padding) and not counted:
                raise LoweringError("it divides by another number than the window's elements; count_include_pad=True "
                                    "without divisor_override would do")
        if ceil:
            raise LoweringError("ceil_mode=True has windows that hang over the edge; ceil_mode=False would do")
        return _windows(self, node, self.value(x), size, stride, padding, dilation, border, program)
    return handler


def _pool_1d(border, program):
    """Windows over (N, C, L) as windows over images of one row."""
    def handler(self, node):
        x, size, stride, padding, *rest = (*node.args, *((None,) * 4))[:len(node.args) + 4]
        size, stride, padding = ((1, first(each)) for each in (size, stride or size, padding or 0))
        dilation = (1, first(rest[0] or 1)) if border else (1, 1)
        if rest[1 if border else 0]:
            raise LoweringError("ceil_mode=True has windows that hang over the edge; ceil_mode=False would do")
        if not border and rest[1] is False and padding[1]:
            raise LoweringError("it divides by another number than the window's elements; count_include_pad=True would "
                                "do")
        output = self.fresh(node, [0, 2, 1])
        value, images = self.value(x), Value(output.where.unsqueeze(2), output.home)
        return _windows(self, node, Value(value.where.unsqueeze(2), value.home), size, stride, (0, padding[1]),
                        dilation, border, program, images)

    def first(value):
        return value if isinstance(value, int) else value[0]
    return handler


def _windows(self, node, value, size, stride, padding, dilation, border, program, output=None):
    taps = size[0] * size[1]
    if not vectors.taps_fit(taps):
        raise LoweringError(f"windows of {taps} elements are more than a vector instruction's; at most "
                            f"{vectors.BODY - 1} would do")
    output = self.fresh(node) if output is None else output
    vectors.pool(self.build, value, output, program(taps), size, stride, padding, dilation, border)
    return node, ()


def _adaptive(self, node):
    value, (oh, ow) = self.value(node.args[0]), pair(node.args[1])
    h, w = value.shape[2:]
    if h % oh or w % ow:
        raise LoweringError(f"{h} x {w} pixels are no multiple of {oh} x {ow}; sides that divide would do")
    size = h // oh, w // ow
    return _windows(self, node, value, size, size, (0, 0), (1, 1), 0.0, programs.average)


def _mean(self, node):
    value = self.value(node.args[0])
    dims = len(value.shape)
    over = sorted(d % dims for d in node.args[1])
    keep = len(node.args) > 2 and node.args[2]
    if dims == 4 and over == [2, 3]:
        images = value
    elif dims == 3 and over == [1]:
        images = Value(value.where.permute(0, 2, 1).unsqueeze(-1), value.home)
    else:
        raise LoweringError(f"it is a mean over dimensions {over} of {dims}; over the pixels of images or the middle "
                            "dimension of three would do")
    n, c, h, w = images.shape
    order = channels_last(dims) if keep and dims == 4 else None
    output = self.fresh(node, order)
    rows = output.home
    own = Value(located((n, c, 1, 1), (rows.pitch, 1, 1, 1), rows.address), rows)
    return _windows(self, node, images, (h, w), (h, w), (0, 0), (1, 1), 0.0, programs.average, own)


def _cat(self, node):
    parts, dim = node.args[0], node.args[1] if len(node.args) > 1 else 0
    values = [self.value(each) for each in parts]
    output = self.fresh(node, vectors.physical(values[0]) if len(values[0].shape) == 4 else None)
    self.build.dram.zeros(output.home)
    start = 0
    for value in values:
        size = value.shape[dim]
        self.copy(value, Value(output.where.narrow(dim, start, size), output.home))
        start += size
    return node, ()


def _pad(self, node):
    return _padded(self, node, node.args[0], node.args[1], node.args[2] if len(node.args) > 2 else 0)


def _padded(self, node, x, sides, value):
    """A tensor with zeros around."""
    if value or min(sides) < 0:
        raise LoweringError(f"it pads with {value} by {sides}; zeros, and sides of 0 or more, would do")
    source, output = self.value(x), self.fresh(node)
    self.build.dram.zeros(output.home)
    inner = output.where
    for n, size in enumerate(reversed(source.shape)):
        if 2 * n < len(sides):
            inner = inner.narrow(-1 - n, sides[2 * n], size)
    self.copy(source, Value(inner, output.home))
    return node, ()


def _pad_mode(self, node):
    if len(node.args) > 2 and node.args[2] != "constant":
        raise LoweringError(f"it pads by mode {node.args[2]!r}; mode 'constant' with zeros would do")
    return _padded(self, node, node.args[0], node.args[1], node.args[3] if len(node.args) > 3 else 0)


def _stack(self, node):
    parts, dim = node.args[0], node.args[1] if len(node.args) > 1 else 0
    output = self.fresh(node)
    self.build.dram.zeros(output.home)
    for number, each in enumerate(parts):
        self.copy(self.value(each), Value(output.where.select(dim, number), output.home))
    return node, ()


def _embedding(self, node):
    table, index = node.args[:2]
    if not self.is_constant(index):
        raise LoweringError("its indices depend on the inputs' real numbers; integer inputs would do")
    value, rows = self.value(table), self.constant(index)
    output = self.fresh(node)
    for place_ in np.ndindex(*rows.shape):
        self.copy(Value(value.where[int(rows[place_])][None], value.home),
                  Value(output.where[place_][None], output.home))
    return node, ()


_add = _binary(programs.add, programs.shift, False)
_HANDLERS: dict[Any, Handler] = {
    hbfp.linear.default: _linear, hbfp.matmul.default: _matmul, hbfp.conv2d.default: _conv2d,
    hbfp.add_bias.default: _add, aten.add.Tensor: _add, aten.add_.Tensor: _add,
    aten.sub.Tensor: _binary(programs.subtract, lambda b: programs.shift(-b), False),
    aten.mul.Tensor: _binary(programs.multiply, programs.scale, True), aten.div.Tensor: _divide,
    aten.softmax.int: _softmax, aten._softmax.default: _softmax, aten.layer_norm.default: _layer_norm,
    **dict.fromkeys(_NORMS, _batch_norm),
    aten.max_pool2d.default: _pool(float("-inf"), programs.maximum),
    aten.max_pool1d.default: _pool_1d(float("-inf"), programs.maximum),
    aten.avg_pool2d.default: _pool(0.0, programs.average), aten.avg_pool1d.default: _pool_1d(0.0, programs.average),
    aten.adaptive_avg_pool2d.default: _adaptive, aten.mean.dim: _mean, aten.constant_pad_nd.default: _pad,
    aten.pad.default: _pad_mode, aten.cat.default: _cat, aten.stack.default: _stack,
    aten.embedding.default: _embedding, aten.masked_fill.Scalar: _masked}
