"""Steps of optimisers as programs for each number: the bits of torch's own steps in the table's operations.

``torch.optim`` writes a step in ``add``, ``mul`` and such, on each parameter by itself, and each of these has its bits
in the table. The programs here do the same operations in the same order, and read and write each number as rarely as
the slots of an instruction allow: three rows in, two out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..vector import programs
from ..vector.side import elements
from .operation import Unsupported
from .results import Program, without

#: Where an update finds its parameter and the gradient; what else it reads is the optimiser's state.
PARAMETER, GRADIENT = "parameter", "gradient"


@dataclass(frozen=True)
class Part:
    """A program of an update, which takes at most three rows and gives at most two.

    Attributes
    ----------
    program : list of VectorInstruction
        What runs for each number by itself.
    reads : tuple of str
        What it takes, in order: :data:`PARAMETER`, :data:`GRADIENT`, or torch's name of a tensor of the state.
    writes : tuple of str
        What it gives, in order; each is new or takes the place of what was read.
    """
    program: Program
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    def alone(self, place: int) -> Program:
        """The program with one of its results."""
        return without(self.program, *(other for other in range(len(self.writes)) if other != place))


@dataclass(frozen=True)
class Update:
    """A step of an optimiser for one parameter: parts, one after the other."""
    parts: tuple[Part, ...]

    @property
    def state(self) -> tuple[str, ...]:
        """Names of what it keeps from step to step."""
        names = dict.fromkeys(name for part in self.parts for name in (*part.reads, *part.writes))
        return tuple(name for name in names if name not in (PARAMETER, GRADIENT))

    def results(self, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Name -> bit patterns behind the step, of the parameter and the state; ``given`` are those before it."""
        found = dict(given)
        for part in self.parts:
            rows = [found[name] for name in part.reads]
            found |= {name: elements(part.alone(place), *rows) for place, name in enumerate(part.writes)}
        return {name: found[name] for name in (PARAMETER, *self.state)}


def update(optimiser: torch.optim.Optimizer, group: dict[str, Any], step: int, kept: bool = False) -> Update:
    """What step number ``step``, from 1, of an optimiser does to each parameter of a group.

    With ``kept`` there is state before the first step, too: :func:`start`.

    Raises
    ------
    Unsupported
        If there is no program for this kind of optimiser, or for an option of it.
    """
    check(optimiser)
    return _UPDATES[type(optimiser)](group, step, kept)


def start(name: str) -> float:
    """What of the state has to be there before the first step, so that this is like all others.

    A sum with -0, and a product of it, change nothing: momentum becomes the gradient. Adam begins with zeros.
    """
    return -0.0 if name == "momentum_buffer" else 0.0


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


def _sgd(group, step, kept):
    keeps, first = group["momentum"] != 0, step == 1 and not kept
    program = programs.sgd(group["lr"], group["momentum"], group["dampening"], group["weight_decay"],
                           nesterov=group["nesterov"], maximize=group["maximize"], first=first)
    return Update((Part(program, (PARAMETER, GRADIENT, *(["momentum_buffer"] if keeps and not first else [])),
                        (*(["momentum_buffer"] if keeps else []), PARAMETER)),))


def _adam(group, step, kept):
    """Four rows in and three out: the moments first, and then the parameter."""
    first, second = group["betas"]
    decay, decoupled, maximize = group["weight_decay"], group["decoupled_weight_decay"], group["maximize"]
    parts = []
    if decay and not decoupled:
        parts.append(Part(programs.decayed(decay, maximize=maximize), (PARAMETER, GRADIENT), (GRADIENT,)))
        maximize = False
    parts.append(Part(programs.adam_moments(first, second, maximize=maximize), (GRADIENT, "exp_avg", "exp_avg_sq"),
                      ("exp_avg", "exp_avg_sq")))
    parts.append(Part(programs.adam_step(group["lr"], step, first, second, group["eps"], decay if decoupled else 0.0),
                      ("exp_avg_sq", "exp_avg", PARAMETER), (PARAMETER,)))
    return Update(tuple(parts))


_UPDATES = {torch.optim.SGD: _sgd, torch.optim.Adam: _adam, torch.optim.AdamW: _adam}
