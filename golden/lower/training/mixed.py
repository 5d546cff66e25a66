"""Trainings whose layers have other mantissas from epoch to epoch: a program for each set of widths, one DRAM."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from hbfp.golden.nn.replace import hbfp_layers
from hbfp.golden.schedule import MixedMantissa
from hbfp.program import Program
from hbfp.system import Accelerator

from ..errors import LoweringError
from ..lowering import Lowered
from .capture import Batch
from .reference import Loss, Make, Reference
from .step import Step, lower_step


def widths(reference: Reference) -> tuple[int, ...]:
    """The mantissas of a reference's layers."""
    return tuple(layer.formats.x.mantissa for _, layer in hbfp_layers(reference.model))


@dataclass
class MixedStep:
    """Steps of a training with a schedule of widths, and PyTorch beside them.

    Attributes
    ----------
    mixed : MixedMantissa
    batches : int
        Steps of an epoch.
    steps : dict
        Widths of the layers -> their step, all with one reference.
    """
    mixed: MixedMantissa
    batches: int
    steps: Mapping[tuple[int, ...], Step]

    @property
    def reference(self) -> Reference:
        """PyTorch, which is the same for all."""
        return next(iter(self.steps.values())).reference

    @property
    def lowered(self) -> Lowered:
        """The program of the first epoch."""
        return next(iter(self.steps.values())).lowered

    @property
    def programs(self) -> list[Program]:
        """The program of each set of widths, the first epoch's first."""
        return [each.lowered.program for each in self.steps.values()]

    def at(self, number: int) -> Step:
        """The step of a number, counted from 0; PyTorch's layers get its widths."""
        self.reference.begin_epoch(self.mixed, number // self.batches)
        return self.steps[widths(self.reference)]


def lower_mixed(model: torch.nn.Module, loss: Loss, optimiser: Make, batch: Batch, accelerator: Accelerator,
                mixed: MixedMantissa, batches: int, **options: Any) -> MixedStep:
    """The programs of a training with a schedule of widths, of which epochs have so many batches.

    The other parameters are those of :func:`~golden.lower.training.step.lower_step`, and so are the errors; also if the
    accelerator does not have the widths.
    """
    steps: dict[tuple[int, ...], Step] = {}
    for epoch in mixed.kinds():
        made = lower_step(model, loss, optimiser, batch, accelerator, mixed=mixed, epoch=epoch, **options)
        first = next(iter(steps.values()), made)
        _check_places(first, made)
        steps[widths(made.reference)] = replace(made, reference=first.reference)
    result = MixedStep(mixed, batches, steps)
    result.at(0)
    return result


def _check_places(first: Step, other: Step) -> None:
    """LoweringError unless two steps have what stays between them in the same place of DRAM, and batches, too."""
    places = [{name: each.lowered.program.tensors[name] for name in each.stays} for each in (first, other)]
    if first.batch != other.batch or places[0] != places[1]:
        raise LoweringError("A training with this schedule of widths cannot be lowered: its programs would have "
                            "weights in other places; one width would do")
