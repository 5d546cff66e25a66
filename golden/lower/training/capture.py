"""One step of training as one graph: forward, loss and backward, in torch's operations.

They are a function of parameters and a batch, and are traced with tensors that have no values. Autograd runs while it
is traced, so that what it calls are nodes like any other.
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from torch.nn.modules import transformer

from hbfp.golden.nn.replace import hbfp_layers
from hbfp.golden.ops.table import parts

from ..errors import LoweringError
from ..export import quiet
from ..same import shorten
from .products import LAYER, changed, take_apart
from .reference import Reference
from .rewrite import rewrite

Batch = tuple[tuple[Any, ...], tuple[Any, ...]]


@dataclass
class Capture:
    """A traced step.

    Attributes
    ----------
    graph : fx.GraphModule
        Its placeholders are the leaves of parameters and batch, in order; it gives ``outputs``.
    given : dict
        Name of a placeholder -> its tensor in the first step.
    names : dict
        Name of a placeholder -> what the program calls it.
    outputs : dict
        What the program calls a result -> its node: the loss, the gradients, and what buffers become.
    buffers : dict
        What the program calls a buffer that forward changes -> what it calls that which it becomes.
    held : set
        Names of placeholders that are the same in every step: buffers that are numbers of another kind, or that
        forward leaves as they are.
    """
    graph: fx.GraphModule
    given: dict[str, torch.Tensor]
    names: dict[str, str]
    outputs: dict[str, fx.Node]
    buffers: dict[str, str]
    held: set[str]

    def leaves(self, batch: Batch) -> dict[str, Any]:
        """Name -> tensor of a batch."""
        return {**_named("input", batch[0]), **_named("target", batch[1])}


def captured(reference: Reference, batch: Batch) -> Capture:
    """The next step of a reference, which stays as it is, for a batch like this one.

    Raises
    ------
    LoweringError
        If torch cannot trace it.
    """
    _check_norms(reference.model)
    _check_convolutions(reference.model)
    trained, inputs = list(reference.updates()), {**_named("input", batch[0]), **_named("target", batch[1])}
    kept = {name: each.detach().clone() for name, each in reference.model.named_buffers()}
    given = {name: each.detach().clone() for name, each in reference.model.named_parameters()} | kept | inputs
    reference.begin()
    try:
        with quiet(), _masks_as_given():
            graph = make_fx(_step(reference, trained, batch), parts(), tracing_mode="fake")(given)
    except LoweringError:
        raise
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        if "FakeTensor" in reason:
            raise LoweringError("The step cannot be lowered: it uses tensors that are no parameters, buffers or inputs "
                                "of the model; register_buffer or register_parameter would do") from error
        raise LoweringError(f"The step cannot be lowered: torch cannot trace it ({reason}); a forward and a loss whose "
                            "path does not depend on values would do") from error
    places = [node for node in graph.graph.nodes if node.op == "placeholder"]
    names = dict(zip((node.name for node in places), given, strict=True))
    changed(graph.graph)
    take_apart(graph.graph, names)
    shorten(graph.graph)
    own = dict(zip((node.name for node in places), given.values(), strict=True))
    unchanged = {node for node in graph.graph.output_node().args[0] if node.op == "placeholder"}
    rewrite(graph, {node: own[node.name] for node in places if names[node.name] in kept and node in unchanged},
            reference.anew)
    results = graph.graph.output_node().args[0]
    outputs = dict(zip(["loss", *(f"{name} gradient" for name in trained)], results, strict=False))
    become = dict(zip(kept, results[len(outputs):], strict=True))
    buffers = {name: f"{name} next" for name, node in become.items()
               if kept[name].is_floating_point() and node.op != "placeholder"}
    outputs |= {buffers[name]: become[name] for name in buffers}
    held = {name for name, called in names.items() if called in kept and called not in buffers}
    return Capture(graph, own, names, outputs, buffers, held)


def _named(what, leaves):
    """Leaves by names of their own: the kind alone if there is one, else with a number."""
    return {what if len(leaves) == 1 else f"{what} {number}": each for number, each in enumerate(leaves)}


def _check_convolutions(model):
    """Refuse convolutions that would round more than gradients stochastically."""
    for name, layer in hbfp_layers(model):
        if isinstance(layer, torch.nn.modules.conv._ConvNd):
            roles = [role for role in "xw" if getattr(layer.formats, role).rounding == "stochastic"]
            if roles:
                kind = type(layer).__name__.removeprefix("HBFP")
                raise LoweringError(f"Layer {name!r} ({kind}) cannot be lowered: its {' and '.join(roles)} would be "
                                    "rounded stochastically, which those of linear layers and of products of matrices "
                                    "are; g alone (--stochastic g), or none, would do")


def _check_norms(model):
    """Refuse running statistics whose share in them changes from step to step."""
    for name, part in model.named_modules():
        if isinstance(part, torch.nn.modules.batchnorm._NormBase) and part.track_running_stats \
                and part.momentum is None:
            raise LoweringError(f"Layer {name!r} ({type(part).__name__}) cannot be lowered: its running statistics are "
                                "means over all steps, with momentum=None; a momentum would do")


@contextmanager
def _masks_as_given():
    """Within, torch's encoders do not ask whether the numbers of a mask are those of a causal one."""
    own = transformer._detect_is_causal_mask
    transformer._detect_is_causal_mask = lambda mask, is_causal=None, size=None: bool(is_causal)
    try:
        yield
    finally:
        transformer._detect_is_causal_mask = own


@contextmanager
def _layers_named(model):
    """Within, nodes that are traced keep the name of the innermost module that is running."""
    graph, begun, handles = get_proxy_mode().tracer.graph, [], []

    def enter(*_):
        begun.append(len(graph.nodes))

    def leave(name, *_):
        for node in list(graph.nodes)[begun.pop():]:
            node.meta.setdefault(LAYER, name)
    for name, part in model.named_modules():
        handles.append(part.register_forward_pre_hook(enter))
        handles.append(part.register_forward_hook(lambda *_, name=name: leave(name), always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _step(reference, trained, batch) -> Callable[[dict[str, torch.Tensor]], list[torch.Tensor]]:
    """The loss of a reference, gradients of parameters and what buffers become, as a function without effects."""
    model = reference.model

    def step(given):
        parameters = {name: given[name].requires_grad_(name in trained) for name, _ in model.named_parameters()}
        inputs, targets = ([given[name] for name in _named(what, leaves)]
                           for what, leaves in zip(("input", "target"), batch, strict=True))
        buffers = {name: given[name].clone() for name, _ in model.named_buffers()}
        with _layers_named(model):
            output = torch.func.functional_call(model, parameters | buffers, tuple(inputs))
        loss = reference.loss(output, *targets)
        if loss.dim() or loss.dtype != torch.float32:
            raise LoweringError(f"The loss cannot be lowered: it has the shape {tuple(loss.shape)}; one number of "
                                "float32 would do")
        gradients = torch.autograd.grad(loss, [parameters[name] for name in trained], torch.ones(()),
                                        allow_unused=True)
        for name, gradient in zip(trained, gradients, strict=True):
            if gradient is None:
                raise LoweringError(f"Parameter {name} cannot be trained: the loss does not depend on it; "
                                    "requires_grad_(False) would do")
        return [loss.detach(), *reference.clipped(gradients), *buffers.values()]
    return step
