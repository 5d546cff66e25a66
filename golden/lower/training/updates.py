"""Steps of optimisers as layers: parameters and state are read and written where they lie."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from hbfp.golden.nn.forms import patterns
from hbfp.golden.ops.operation import Unsupported, keeps_zeros
from hbfp.golden.ops.optimisers import Update, check, update
from hbfp.golden.ops.results import without
from hbfp.golden.vector.side import elements

from .. import vectors
from ..builder import Builder
from ..errors import LoweringError
from ..memory import Value

#: Where an update finds its parameter and the gradient; what else it reads is the optimiser's state.
PARAMETER, GRADIENT = "parameter", "gradient"
#: What state is before the first step: a sum with -0, and a product of it, change nothing.
START = -0.0


def known(optimiser: torch.optim.Optimizer) -> None:
    """Raise LoweringError unless one program serves every step of an optimiser."""
    name = type(optimiser).__name__
    try:
        check(optimiser)
        for group in optimiser.param_groups:
            if update(optimiser, group, 2) != update(optimiser, group, 3):
                raise Unsupported(f"the steps of {name} differ from each other, and one program does all; "
                                  "torch.optim.SGD would do")
            if group.get("dampening") and group["momentum"]:
                raise Unsupported(f"dampening is {group['dampening']!r}, which the first step leaves out, and one "
                                  "program does all; 0 would do")
    except Unsupported as error:
        raise LoweringError(f"The optimiser cannot be lowered: {error}") from None


def of(optimiser: torch.optim.Optimizer, group: Mapping[str, Any]) -> Update:
    """The update of each parameter of a group, in every step."""
    return update(optimiser, dict(group), 2)


def state(each: Update) -> list[str]:
    """Names of what an update keeps from step to step."""
    return [name for name in each.reads if name not in (PARAMETER, GRADIENT)]


def results(each: Update, numbers: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Name -> what an update gives for tensors of these names."""
    given = [patterns(numbers[name].detach()) for name in each.reads]
    return {name: elements(_alone(each, place), *given).view(np.float32) for place, name in enumerate(each.writes)}


def lowered(build: Builder, each: Update, values: Mapping[str, Value]) -> None:
    """Emit an update of tensors that lie at ``values``, in place."""
    reads, writes = ([values[name] for name in names] for names in (each.reads, each.writes))
    if not writes[0].shape:
        reads, writes = ([Value(value.where[None], value.home) for value in part] for part in (reads, writes))
    order = vectors.physical(writes[0])
    flat = writes[0].shape[order[-1]] % build.lanes == 0 or all(
        keeps_zeros(_alone(each, place), len(reads)) for place in range(len(writes)))
    vectors.by_rows(build, each.program, reads, order, writes, flat=flat)


def _alone(each, place):
    """An update's program with one of its results."""
    return without(each.program, *(other for other in range(len(each.writes)) if other != place))
