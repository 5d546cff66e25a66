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

from hbfp.golden.ops.table import parts

from ..errors import LoweringError
from ..export import quiet
from ..same import shorten
from .products import LAYER, take_apart
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
        What the program calls a result -> its node: the loss and the gradients.
    """
    graph: fx.GraphModule
    given: dict[str, torch.Tensor]
    names: dict[str, str]
    outputs: dict[str, fx.Node]

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
    _check_buffers(reference.model)
    trained, inputs = list(reference.updates()), {**_named("input", batch[0]), **_named("target", batch[1])}
    parameters = {name: each.detach().clone() for name, each in reference.model.named_parameters()}
    given = parameters | inputs
    try:
        with quiet(), _masks_as_given():
            graph = make_fx(_step(reference, trained, batch), parts(), tracing_mode="fake")(given)
    except LoweringError:
        raise
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise LoweringError(f"The step cannot be lowered: torch cannot trace it ({reason}); a forward and a loss whose "
                            "path does not depend on values would do") from error
    places = [node for node in graph.graph.nodes if node.op == "placeholder"]
    names = dict(zip((node.name for node in places), given, strict=True))
    take_apart(graph.graph, names)
    shorten(graph.graph)
    rewrite(graph)
    outputs = dict(zip(["loss", *(f"{name} gradient" for name in trained)], graph.graph.output_node().args[0],
                       strict=True))
    return Capture(graph, dict(zip((node.name for node in places), given.values(), strict=True)), names, outputs)


def _named(what, leaves):
    """Leaves by names of their own: the kind alone if there is one, else with a number."""
    return {what if len(leaves) == 1 else f"{what} {number}": each for number, each in enumerate(leaves)}


def _check_buffers(model):
    """Refuse layers that keep numbers beside parameters, which a forward pass in training changes."""
    for name, part in model.named_modules():
        kept = [each for each, buffer in part.named_buffers(recurse=False) if buffer is not None]
        if kept:
            raise LoweringError(f"Layer {name!r} ({type(part).__name__}) cannot be lowered: it keeps {', '.join(kept)} "
                                "beside its parameters; a layer without buffers would do")


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
    """The loss of a reference and the gradients of parameters as a function without effects."""
    model = reference.model

    def step(given):
        parameters = {name: given[name].requires_grad_(name in trained) for name, _ in model.named_parameters()}
        inputs, targets = ([given[name] for name in _named(what, leaves)]
                           for what, leaves in zip(("input", "target"), batch, strict=True))
        with _layers_named(model):
            output = torch.func.functional_call(model, parameters, tuple(inputs))
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
        return [loss.detach(), *gradients]
    return step
