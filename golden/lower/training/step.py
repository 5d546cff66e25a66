"""From a step of training to one program: batches are data, and parameters and state go from one place to another.

There are two places for all that comes with a step, which steps use in turns: one has the batch, parameters, state and
buffers, and what these become goes to the other. So a step that is stopped leaves those of before.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import fx

from hbfp.checks import check_kind
from hbfp.golden.schedule import MixedMantissa
from hbfp.isa.instructions import Instruction
from hbfp.system import Accelerator

from ..builder import Builder
from ..formats import check_formats
from ..lowering import Lowered
from .capture import Batch, captured
from .evaluated import evaluated
from .host import Host
from .layers import layers
from .network import StepNetwork, program_of
from .one_program import OneProgram
from .reference import Loss, Make, Plan, Reference


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
    def done(self) -> int:
        return self.reference.steps

    def told(self) -> Sequence[int]:
        return self.reference.values()

    @property
    def key(self) -> int:
        """What the register ``seed`` has in the next step."""
        return self.reference.key

    def writes(self, batch: Batch) -> dict[str, np.ndarray]:
        """Name of a tensor of the program -> what a host writes there for the next step; errors of :class:`Host`."""
        return self.host.writes(batch) | self.numbers()

    def instructions(self, batch: Batch) -> dict[int, Instruction]:
        """What :meth:`Host.instructions` gives."""
        return self.host.instructions(batch)

    def layers(self, batch: Batch) -> dict[str, np.ndarray]:
        """Name of each tensor that a layer of the next step gives, forward and backward -> its numbers, by torch's
        graph of the step. They are those of :attr:`Lowered.expected` in the first step.
        """
        return _laid(layers(self.host.capture, self.reference, self.inner, batch), self.lowered.orders)

    def advance(self, batch: Batch) -> dict[str, np.ndarray]:
        """Let PyTorch do a step: name of each tensor of the program that it changes, without a model's number before
        it, -> its numbers.
        """
        loss = self.reference.step(*batch)
        return _laid(self.reference.expected(loss, self.host.capture.buffers), self.host.orders)


def _laid(tensors, orders):
    """Tensors as a program has them, by name, whose dimensions it has in these orders."""
    return {name: each.float().permute(orders[name]).contiguous().numpy() for name, each in tensors.items()}


def lower_step(model: torch.nn.Module, loss: Loss, optimiser: Make, batch: Batch, accelerator: Accelerator, *,
               stochastic: Sequence[str] = (), seed: int = 1, plan: Plan | None = None, clip: float | None = None,
               mixed: MixedMantissa | None = None, epoch: int = 0, anew: bool = False, values: bool = True,
               apart: Collection[str] = ()) -> Step:
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
    anew : bool
        Whether masks of sparse weights are made anew behind each step; else they stay as they are at the start.
    values : bool
        Whether memory and what is expected have numbers; without them the same instructions are there sooner, for the
        cycle model.
    apart : collection of str
        Layers, gradients of weights, that stand apart from others, so that the step may give way in them.

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
    reference = Reference(model, loss, optimiser, accelerator, stochastic, seed, plan, clip, anew=anew)
    if mixed is not None:
        reference.begin_epoch(mixed, epoch)
    made = Made(reference, batch, values=values, apart=apart)
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
    values, apart
        As of :func:`lower_step`.
    """

    def __init__(self, reference: Reference, batch: Batch, number: int | None = None, values: bool = True,
                 apart: Collection[str] = ()) -> None:
        self.reference, self.number, self.first = reference, number, batch
        self.values, self.apart = values, apart
        self.prefix = "" if number is None else f"{number}/"
        self.capture = captured(reference, batch)
        self.graph, self.moved, self.whole = evaluated(self.capture, reference.side, values)
        self.graph.inputs = {node: self.prefix + name for node, name in self.graph.inputs.items()}
        self.own: StepNetwork | None = None

    def network(self, build: Builder, arguments: Sequence[int], overlaps: bool) -> StepNetwork:
        """The model on its way into a program that is told these arguments in the first step."""
        capture = self.capture
        results = {self.prefix + name: node for name, node in capture.outputs.items()}
        names = {node: name for name, node in results.items()} | self.graph.inputs
        self.own = StepNetwork(
            self.graph, build, self.number, whole=self.whole, names=names, results=results, batches=True,
            updates={self.prefix + name: each for name, each in self.reference.updates().items()},
            buffers={self.prefix + name: self.prefix + new for name, new in capture.buffers.items()},
            arguments=arguments, overlaps=overlaps, apart=self.apart,
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
