"""Models whose products are of integers: each operand over its scale before, each result times both scales after.

An accelerator of ``int8`` rounds what it converts to integers from -127 to 127 as it is, and gives sums of their
products. Scales are a matter of the model: a factor before, one for all of a tensor, and one behind for each output
channel, which the side unit has. A batch norm behind a product goes into that factor and an addend.
"""

import copy
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from hbfp.golden.nn import convert
from hbfp.golden.nn.formats import Formats
from hbfp.system import Accelerator

from .errors import LoweringError
from .export import exported
from .formats import formats
from .hosted import OnHost
from .reached import reached
from .same import shorten

aten = torch.ops.aten
#: The largest magnitude of an integer.
LARGEST = 127
#: Where a graph says that it has scales already.
_SCALED = "hbfp_scaled"
#: Products whose second operand's first dimension is that of the result's channels -> that dimension of the result.
_CHANNELS = {"linear": -1, "conv2d": 1, "conv3d": 1}


def is_scaled(model: torch.nn.Module) -> bool:
    """Whether :func:`scaled` gave a model."""
    return isinstance(model, fx.GraphModule) and _SCALED in model.meta


def scaled(model: torch.nn.Module, batches: Sequence[tuple[Any, ...]], accelerator: Accelerator) -> fx.GraphModule:
    """A model in evaluation with scales, for an accelerator of ``int8``.

    Parameters
    ----------
    model : torch.nn.Module
        In float32; it stays as it is.
    batches : sequence of tuple
        What its ``forward`` takes, of the same shapes; the scale of a tensor reaches up to the largest magnitude that
        it has in any of them, and what is beyond in another batch saturates. A constant weight has a scale for each
        output channel.
    accelerator : Accelerator
        The one whose products it is for.

    Returns
    -------
    torch.fx.GraphModule
        For inputs of these shapes. PyTorch computes with it what the accelerator does.

    Raises
    ------
    LoweringError
        If torch cannot trace it, or parts of it are on the host.
    ValueError
        If there are no batches.
    """
    if not batches:
        raise ValueError("Scales need a batch at least")
    if any(isinstance(part, OnHost) for part in model.modules()):
        raise LoweringError("A model with parts on the host has no scales for int8; another arithmetic would do")
    twin = convert(copy.deepcopy(model).eval(), formats(accelerator))
    graph = exported(twin, tuple(batches[0])).module(check_guards=False)
    shorten(graph.graph)
    graph.graph.eliminate_dead_code()
    with torch.no_grad():
        found = _Largest(graph)
        for batch in batches:
            found.run(*batch)
        _Scales(graph, found).write()
    graph.graph.eliminate_dead_code()
    graph.recompile()
    graph.meta[_SCALED] = True
    return graph


def _product(node):
    """The name of a node's product; empty if it is none."""
    target = node.target
    return target._schema.name.removeprefix("hbfp::") if isinstance(target, torch._ops.OpOverload) and \
        target.namespace == "hbfp" and target._schema.arguments[-1].name == "formats" else ""


class _Largest(fx.Interpreter):
    """A graph with its products in FP32; the largest magnitude of each operand, and what constants are."""

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph)
        self.tops: dict[fx.Node, float] = {}
        self.moving = reached((node for node in graph.graph.nodes if node.op == "placeholder"), onward=True)
        self.constants: dict[fx.Node, torch.Tensor] = {}

    def run_node(self, node: fx.Node) -> Any:
        """Run it; of a product, see the operands first."""
        if not _product(node):
            return super().run_node(node)
        (a, b, *options), names = self.fetch_args_kwargs_from_env(node)[0], node.args[:2]
        for operand, values in zip(names, (a, b), strict=True):
            finite = torch.where(values.isfinite(), values.abs(), 0)
            top = float(finite.amax()) if finite.numel() else 0.0
            self.tops[operand] = max(self.tops.get(operand, 0.0), top)
            if operand not in self.moving:
                self.constants[operand] = values
        return node.target(a, b, *options[:-1], _exactly(options[-1]))


def _exactly(text):
    """Formats of an int8 product, as those of FP32 in the same order."""
    own = Formats.read(text)
    return Formats.of(own.x, w=own.w, g=own.g, mode="fp32").text


class _Scales:
    """Writes the scales into a graph."""

    def __init__(self, module: fx.GraphModule, found: _Largest) -> None:
        self.module, self.found = module, found
        self.products = [node for node in module.graph.nodes if _product(node)]
        # Steps of a recurrent layer have one weight: all that it multiplies has one scale, and so it has one factor.
        self.shared: dict[fx.Node, float] = {}
        for node in self.products:
            x, w = node.args[:2]
            self.shared[w] = max(self.shared.get(w, 0.0), found.tops[x])
        self.over: dict[tuple[fx.Node, float], fx.Node] = {}
        self.weights: dict[fx.Node, tuple[fx.Node, torch.Tensor]] = {}
        self.held = 0

    def write(self) -> None:
        """All of them."""
        for node in self.products:
            x, w = node.args[:2]
            channel = _CHANNELS.get(_product(node)) if w in self.found.constants else None
            with self.module.graph.inserting_before(node):
                left, scale = self._over(x, self.shared[w])
                right, other = self._over(w, self.found.tops[w]) if channel is None else self._integers(w)
            node.args = (left, right, *node.args[2:])
            factor, last, addend = scale * other, node, None
            if channel == 1 and (norm := self._norm(node)) is not None:
                last, own, addend = norm
                factor = factor * own
            users = list(last.users)
            made = self._behind(node, node, aten.mul.Tensor, factor, channel)
            if addend is not None:
                made = self._behind(made, made, aten.add.Tensor, addend, channel)
            for user in users:
                user.replace_input_with(last, made)

    def _over(self, x, top):
        """A tensor over its scale, and the scale."""
        inverse, scale = (float(torch.tensor(each if top else 1.0)) for each in (LARGEST / (top or 1), top / LARGEST))
        if (x, inverse) not in self.over:
            self.over[x, inverse] = self._like(x, self.module.graph.call_function(aten.mul.Tensor, (x, inverse)))
        return self.over[x, inverse], torch.tensor(scale)

    def _integers(self, w):
        """A constant weight over the scales of its channels, the first dimension, as integers; and the scales."""
        if w not in self.weights:
            values = self.found.constants[w]
            tops = values.abs().flatten(1).amax(1)
            scales = torch.where(tops > 0, tops / LARGEST, 1.0)
            whole = (values / scales.view(-1, *[1] * (values.dim() - 1))).round().clamp(-LARGEST, LARGEST)
            self.weights[w] = self._like(w, self._constant(whole)), scales
        return self.weights[w]

    def _norm(self, node):
        """The batch norm that alone takes a product, with its factor and addend of each channel; None if there is none.
        """
        norm = next(iter(node.users))
        if len(node.users) > 1 or norm.target is not aten.batch_norm.default or norm.args[5]:
            return None
        w, b, mean, var = (None if each is None else operator.attrgetter(each.target)(self.module)
                           if each.op == "get_attr" else each for each in norm.args[1:5])
        if any(isinstance(each, fx.Node) for each in (w, b, mean, var)):
            return None
        factor = (var + norm.args[7]).rsqrt() * (1.0 if w is None else w)
        return norm, factor.detach(), ((0.0 if b is None else b) - mean * factor).detach()

    def _behind(self, last, like, target, values, channel):
        """``last`` and then an operation with constants, one of each channel or one."""
        if values.dim():
            dims = like.meta["val"].dim()
            values = values.view(-1, *[1] * (dims - 1 - channel % dims))
        with self.module.graph.inserting_after(last):
            constant = self._constant(values) if values.dim() else float(values)
        with self.module.graph.inserting_after(constant if values.dim() else last):
            made = self.module.graph.call_function(target, (last, constant))
        return self._like(like, made)

    def _constant(self, values):
        name, self.held = f"int8_{self.held}", self.held + 1
        self.module.register_buffer(name, values.detach().contiguous())
        return self.module.graph.get_attr(name)

    @staticmethod
    def _like(node, made):
        """A node that stands where another does, with its shape."""
        made.meta = {key: node.meta[key] for key in ("nn_module_stack", "val") if key in node.meta}
        return made
