"""Steps of optimisers as one program for each number: the bits of torch's own steps in the table's operations.

``torch.optim`` writes a step in ``add``, ``mul`` and such, on each parameter by itself, and each of these has its bits
in the table. A program here does the same operations in the same order, and reads and writes each number once.
"""

from dataclasses import dataclass
from typing import Any

import torch

from ..vector import programs
from .operation import Unsupported
from .results import Program


@dataclass(frozen=True)
class Update:
    """A step of an optimiser for one parameter.

    Attributes
    ----------
    program : list of VectorInstruction
        What runs for each number by itself.
    reads : tuple of str
        What it takes, in order: "parameter", "gradient", or torch's name of a tensor of the optimiser's state.
    writes : tuple of str
        What it gives, in order; each is new or takes the place of what was read.
    """
    program: Program
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def update(optimiser: torch.optim.Optimizer, group: dict[str, Any], step: int) -> Update:
    """What step number ``step``, from 1, of an optimiser does to each parameter of a group.

    Raises
    ------
    Unsupported
        If there is no program for this kind of optimiser, or for an option of it.
    """
    check(optimiser)
    return _UPDATES[type(optimiser)](group, step)


def check(optimiser: torch.optim.Optimizer) -> None:
    """Raise :class:`Unsupported` with one line unless there is a program for each step of an optimiser."""
    if type(optimiser) not in _UPDATES:
        known = ", ".join(each.__name__ for each in _UPDATES)
        raise Unsupported(f"Optimiser {type(optimiser).__name__} has no program; torch.optim's {known} would do")
    for group in optimiser.param_groups:
        for name in ("differentiable", "capturable", "fused", "amsgrad"):
            if group.get(name):
                raise Unsupported(f"{name}=True computes a step in another way; {name}=False would do")
        if any(isinstance(each, torch.Tensor) for each in (group["lr"], *group.get("betas", ()))):
            raise Unsupported("a rate is a tensor; a number would do")


def _sgd(group, step):
    keeps = group["momentum"] != 0
    program = programs.sgd(group["lr"], group["momentum"], group["dampening"], group["weight_decay"],
                           nesterov=group["nesterov"], maximize=group["maximize"], first=step == 1)
    return Update(program, ("parameter", "gradient", *(["momentum_buffer"] if keeps and step > 1 else [])),
                  (*(["momentum_buffer"] if keeps else []), "parameter"))


def _adam(group, step):
    first, second = group["betas"]
    program = programs.adam(group["lr"], step, first, second, group["eps"], group["weight_decay"],
                            decoupled=group["decoupled_weight_decay"], maximize=group["maximize"])
    return Update(program, ("parameter", "gradient", "exp_avg", "exp_avg_sq"), ("exp_avg", "exp_avg_sq", "parameter"))


_UPDATES = {torch.optim.SGD: _sgd, torch.optim.Adam: _adam, torch.optim.AdamW: _adam}
