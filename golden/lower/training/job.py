"""Steps of several models as one program: each with weights, rates and state of its own, and the bits of it alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from hbfp.checks import check_kind
from hbfp.golden.number.arrays import listed
from hbfp.isa.instructions import Instruction
from hbfp.system import Accelerator

from ..errors import LoweringError
from ..lowering import Lowered
from ..network import of_the_job
from .capture import Batch
from .network import program_of
from .one_program import OneProgram
from .reference import Loss, Make, Plan, Reference
from .step import Made, Step
from .updates import NEXT


@dataclass
class Job(OneProgram):
    """A step of several models as a program, and PyTorch beside it, which trains each alone.

    Attributes
    ----------
    lowered : Lowered
        The program; names of model n's tensors and layers begin with ``n/``.
    steps : list of Step
        That of each model: what PyTorch does, and what a host writes.
    place : range
        Bytes of DRAM that are the first place of what comes with a step, of all models.
    shared : bool
        Whether a batch is one for all models, and there once.
    """
    lowered: Lowered
    steps: list[Step]
    place: range
    shared: bool = False

    @property
    def losses(self) -> list[str]:
        """What the program calls the losses."""
        return [f"{number}/loss" for number in range(len(self.steps))]

    @property
    def key(self) -> int:
        """What the register ``seed`` has in the next step, for all models."""
        return self.steps[0].key

    @property
    def done(self) -> int:
        return self.steps[0].done

    def told(self) -> Sequence[int]:
        return [word for each in self.steps for word in each.told()]

    def writes(self, batches: Sequence[Batch]) -> dict[str, np.ndarray]:
        """Name of a tensor of the program -> what a host writes there for the next step, of a batch for each model.

        Raises
        ------
        LoweringError
            If batches differ where the job shares one.
        """
        found = self.numbers()
        for number, batch in enumerate(batches):
            if self.shared and batch is not batches[0]:
                raise LoweringError(f"The batch of model {number} must be that of model 0, as in the first step; a job "
                                    "that shares none would do")
        for number, (step, batch) in enumerate(zip(self.steps, batches, strict=True)):
            found |= {f"{number}/{name}": values for name, values in step.host.writes(batch).items()}
        return found

    def instructions(self, batches: Sequence[Batch]) -> dict[int, Instruction]:
        """Number -> instruction, of those that take rows of tables, for batches."""
        return {number: each for step, batch in zip(self.steps, batches, strict=True)
                for number, each in step.host.instructions(batch).items()}

    def layers(self, batches: Sequence[Batch]) -> dict[str, np.ndarray]:
        """What :meth:`Step.layers` gives, of all models."""
        return {name: values for step, batch in zip(self.steps, batches, strict=True)
                for name, values in step.layers(batch).items()}

    def advance(self, batches: Sequence[Batch]) -> dict[str, np.ndarray]:
        """Let PyTorch do a step of each model: name of each tensor that the program changes -> its numbers."""
        return {f"{number}/{name}": values
                for number, (step, batch) in enumerate(zip(self.steps, batches, strict=True))
                for name, values in step.advance(batch).items()}


def lower_job_step(models: Sequence[torch.nn.Module], loss: Loss, optimisers: Sequence[Make], batches: Sequence[Batch],
                   accelerator: Accelerator, *, stochastic: Sequence[str] = (), seed: int = 1,
                   plans: Sequence[Plan] | None = None, clip: float | None = None, anew: bool = False,
                   values: bool = True, shared: bool = False, reorders: bool = True,
                   layers: bool = True) -> Job:
    """The program of a step of several models, which take turns layer by layer.

    Parameters
    ----------
    models : sequence of torch.nn.Module
        In float32; they stay as they are.
    loss : callable
        Of a model's output and the targets.
    optimisers : sequence of callable
        Of the parameters of each.
    batches : sequence of (tuple, tuple)
        The first of each: inputs and targets.
    accelerator, stochastic, seed, clip, anew, values
        As for :func:`~.step.lower_step`; every model draws the numbers that it draws alone.
    shared : bool
        Whether batches are one for all models in each step: it is in DRAM once, and converted for all of them.
    reorders : bool
        Whether instructions of all models stand in the order of :func:`~golden.lower.reordered.reordered`.
    layers : bool
        Whether DRAM has what each layer gives though no instruction reads it there; if not, where ``reorders``.
    plans : sequence of callable, optional
        Gives the schedule of each optimiser's learning rates.

    Raises
    ------
    LoweringError
        As :func:`~.step.lower_step` does, with the model's number before the line.
    ValueError
        If there are not as many optimisers, batches or schedules as models.
    """
    check_kind("accelerator", accelerator, Accelerator)
    made, first = [], NEXT + 1
    models = listed(models, "Models")
    each_plan: list[Plan | None] = list(plans) if plans is not None else [None for _ in models]
    for number, (model, make, batch, plan) in enumerate(zip(models, optimisers, batches, each_plan, strict=True)):
        check_kind("model", model, torch.nn.Module)
        try:
            reference = Reference(model, loss, make, accelerator, stochastic, seed, plan, clip, first, anew)
            made.append(Made(reference, batch, number, values))
        except LoweringError as error:
            raise LoweringError(f"{of_the_job(number)}{error}") from None
        first = reference.numbers.stop
    lowered, place = program_of(accelerator, made, shared, reorders and len(made) > 1, layers)
    return Job(lowered, [each.step(lowered, place) for each in made], place, shared)
