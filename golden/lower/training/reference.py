"""Training in PyTorch with the accelerator's arithmetic: what every number of a step has to be."""

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import torch

from hbfp.golden.nn import begin_step, convert, hbfp_layers
from hbfp.golden.nn.side import sided
from hbfp.golden.ops.optimisers import Update
from hbfp.golden.position import step_key
from hbfp.golden.schedule import MixedMantissa
from hbfp.golden.vector.side import Side
from hbfp.system import Accelerator

from ..errors import LoweringError
from ..formats import formats, masks_anew, sparse
from .updates import NEXT, Numbers

Loss = Callable[..., torch.Tensor]
Make = Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]


class Schedule(Protocol):
    """What changes learning rates, such as those of :mod:`torch.optim.lr_scheduler`."""

    def step(self) -> None:
        """A step of the optimiser is done."""


Plan = Callable[[torch.optim.Optimizer], Schedule]


class Reference:
    """A copy of a model in training, its loss and its optimiser, as PyTorch computes them bit for bit like the device.

    Parameters
    ----------
    model : torch.nn.Module
        In float32; it stays as it is.
    loss : callable
        Of the model's output and the targets.
    optimiser : callable
        Of parameters.
    accelerator : Accelerator
        Whose formats and side arithmetic it has.
    stochastic : sequence of str
        Roles of what is rounded stochastically, by position: of x, w and g.
    seed : int
        Of these numbers.
    plan : callable, optional
        Gives the schedule of an optimiser's learning rates.
    clip : float, optional
        Gradients are clipped to this norm, that of all of them together.
    first : int
        The number of the optimiser's first argument.
    anew : bool
        Whether masks of sparse weights are made anew behind each step; else they stay.

    Attributes
    ----------
    steps : int
        How many it has done.
    model : torch.nn.Module
        The converted copy.
    optimiser : torch.optim.Optimizer
        Of its parameters.
    steps : int
        Done so far.
    """

    def __init__(self, model: torch.nn.Module, loss: Loss, optimiser: Make, accelerator: Accelerator,
                 stochastic: Sequence[str] = (), seed: int = 1, plan: Plan | None = None,
                 clip: float | None = None, first: int = NEXT + 1, anew: bool = False) -> None:
        self.steps, self.seed, self.stochastic = 0, seed, tuple(stochastic)
        self.draws = accelerator.stochastic
        if accelerator.core.number.sums:
            raise LoweringError("A training step cannot be lowered: int8 has scales that are fixed beforehand, which "
                                "gradients have not; another arithmetic would do")
        self.model = convert(copy.deepcopy(model).train(), formats(accelerator, stochastic), seed=seed,
                             noise="position")
        sparse(self.model, accelerator)
        self.loss, self.optimiser = loss, optimiser(self.model.parameters())
        self.anew = accelerator.core.sparse if anew and accelerator.core.takes_sparse else None
        if self.anew is not None:
            masks_anew(self.model, self.optimiser, self.anew)
        self.numbers = Numbers(self.optimiser, first)
        self.schedule, self.clip = None if plan is None else plan(self.optimiser), clip
        self.side = Side.of(accelerator)

    def begin_epoch(self, mixed: MixedMantissa, epoch: int) -> None:
        """Give layers the mantissas of an epoch, counted from 0."""
        mixed.apply(hbfp_layers(self.model), epoch)

    def begin(self) -> None:
        """Let products and dropouts draw the numbers of the next step, from its first on."""
        begin_step(self.model, self.steps)

    @property
    def key(self) -> int:
        """What the register ``seed`` has in the next step."""
        return step_key(self.seed, self.steps) if self.draws else 0

    def step(self, inputs: tuple[Any, ...], targets: tuple[Any, ...]) -> torch.Tensor:
        """One step of training; its loss."""
        self.begin()
        self.steps += 1
        with sided(self.side):
            self.optimiser.zero_grad()
            loss = self.loss(self.model(*inputs), *targets)
            loss.backward()
            if self.clip is not None:
                torch.nn.utils.clip_grad_norm_(self._trained(), self.clip, foreach=False)
            self.optimiser.step()
        if self.schedule is not None:
            self.schedule.step()
        return loss.detach()

    def clipped(self, gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Gradients as a step has them, without a change of those that are given."""
        if self.clip is None:
            return list(gradients)
        total = torch.nn.utils.get_total_norm(gradients, foreach=False)
        share = torch.clamp(self.clip / (total + 1e-6), max=1.0)
        return [each * share for each in gradients]

    def values(self) -> tuple[int, ...]:
        """Arguments of the next step, from the optimiser's first on; LoweringError as of :meth:`Numbers.values`."""
        return self.numbers.values(self.optimiser, self.steps + 1)

    def updates(self) -> dict[str, Update]:
        """Name of each parameter that is trained -> what a step of the optimiser does to it; in the model's order,
        which says in which one the norm of all gradients is added up, whatever the groups.
        """
        found = {parameter: each for group, each in zip(self.optimiser.param_groups, self.numbers.updates, strict=True)
                 for parameter in group["params"]}
        return {name: found[each] for name, each in self.model.named_parameters()
                if each.requires_grad and each in found}

    def _trained(self):
        return [self.model.get_parameter(name) for name in self.updates()]

    def expected(self, loss: torch.Tensor, buffers: Iterable[str] = ()) -> dict[str, torch.Tensor]:
        """All tensors behind a step, ``buffers`` among them, by the names that programs have for them."""
        parameters, found = dict(self.model.named_parameters()), {"loss": loss}
        for name, each in self.updates().items():
            parameter = parameters[name]
            assert parameter.grad is not None
            found |= {f"{name} gradient": parameter.grad, f"{name} after": parameter.detach()}
            found |= {f"{name} {kept} after": self.optimiser.state[parameter][kept] for kept in each.state}
        return found | {f"{name} after": self.model.get_buffer(name) for name in buffers}
