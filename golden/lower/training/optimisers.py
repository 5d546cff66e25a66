"""Updates of parameters as functions: what a step of torch's optimiser does, of tensors that it does not change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import LoweringError

#: New parameter and new state, of parameter, gradient, state, and the options of its group.
Update = Callable[[torch.Tensor, torch.Tensor, dict[str, torch.Tensor], Mapping[str, Any]],
                  tuple[torch.Tensor, dict[str, torch.Tensor]]]


@dataclass(frozen=True)
class Optimiser:
    """What is known of a kind of optimiser.

    Attributes
    ----------
    start : callable
        Of the options of a group: name -> the number that the state of its parameters has before the first step.
    update : callable
        One step, in the operations and the order of torch's own.
    needs : mapping
        Option -> the only value of it that has a program.
    """
    start: Callable[[Mapping[str, Any]], dict[str, float]]
    update: Update
    needs: Mapping[str, Any]


def _sgd(parameter, gradient, state, options):
    if options["weight_decay"]:
        gradient = gradient.add(parameter, alpha=options["weight_decay"])
    if options["momentum"]:
        kept = state["momentum_buffer"].mul(options["momentum"]).add(gradient)
        state = {"momentum_buffer": kept}
        gradient = gradient.add(kept, alpha=options["momentum"]) if options["nesterov"] else kept
    return parameter.add(gradient, alpha=-options["lr"]), state


#: The first step of torch takes the gradient itself for the momentum: so it is a sum with -0, which changes nothing.
OPTIMISERS: dict[type[torch.optim.Optimizer], Optimiser] = {
    torch.optim.SGD: Optimiser(lambda options: {"momentum_buffer": -0.0} if options["momentum"] else {}, _sgd,
                               {"dampening": 0, "maximize": False, "differentiable": False})}


def known(optimiser: torch.optim.Optimizer) -> Optimiser:
    """What is known of an optimiser; LoweringError if it has no program."""
    name = type(optimiser).__name__
    found = OPTIMISERS.get(type(optimiser))
    if found is None:
        names = ", ".join(f"torch.optim.{each.__name__}" for each in OPTIMISERS)
        raise LoweringError(f"Optimiser {name} cannot be lowered: its step has no program; {names} would do")
    for group in optimiser.param_groups:
        for option, only in found.needs.items():
            if group[option] != only:
                raise LoweringError(f"Optimiser {name} cannot be lowered: its {option} is {group[option]!r}; {only!r} "
                                    "would do")
        for option in ("lr", "momentum", "weight_decay"):
            if isinstance(group[option], torch.Tensor):
                raise LoweringError(f"Optimiser {name} cannot be lowered: its {option} is a tensor; a number would do")
    return found
