"""What ``torch.optim`` does to a parameter in one step, on the rows of all models at once.

Each function has the operations of torch's own, in their order, so that every element gets the same bits. Where models
have different coefficients, an operation runs on each run of neighbours that have equal ones.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

Group = dict[str, Any]


def _runs(groups: Sequence[Group], value: Callable[[Group], Any]) -> Iterator[tuple[slice, Any]]:
    """Rows of neighbours for which ``value`` of their groups is equal, and that value."""
    first, values = 0, [value(group) for group in groups]
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[first]:
            yield slice(first, i), values[first]
            first = i


def _decayed(values, grads, groups):
    """Gradients with the weights' decay added, of the models that have one; ``grads`` itself where none has."""
    if not any(group["weight_decay"] for group in groups):
        return grads
    grads = grads.clone()
    for rows, decay in _runs(groups, lambda group: group["weight_decay"]):
        if decay:
            torch.add(grads[rows], values[rows], alpha=decay, out=grads[rows])
    return grads


def sgd(values: torch.Tensor, grads: torch.Tensor, state: dict[str, torch.Tensor], groups: Sequence[Group],
        step: int) -> None:
    """``torch.optim.SGD``; all or none of the models have momentum, and equal ``nesterov``."""
    grads = _decayed(values, grads, groups)
    if "momentum_buffer" in state:
        buffer = state["momentum_buffer"]
        if step == 1:
            buffer.copy_(grads)
        else:
            for rows, momentum in _runs(groups, lambda group: group["momentum"]):
                buffer[rows].mul_(momentum)
            for rows, dampening in _runs(groups, lambda group: group["dampening"]):
                buffer[rows].add_(grads[rows], alpha=1 - dampening)
        if groups[0]["nesterov"]:
            grads = torch.cat([grads[rows].add(buffer[rows], alpha=momentum)
                               for rows, momentum in _runs(groups, lambda group: group["momentum"])])
        else:
            grads = buffer
    for rows, rate in _runs(groups, lambda group: float(group["lr"])):
        values[rows].add_(grads[rows], alpha=-rate)


def adam(values: torch.Tensor, grads: torch.Tensor, state: dict[str, torch.Tensor], groups: Sequence[Group],
         step: int) -> None:
    """``torch.optim.Adam`` without ``amsgrad``."""
    _adam(values, _decayed(values, grads, groups), state, groups, step)


def adamw(values: torch.Tensor, grads: torch.Tensor, state: dict[str, torch.Tensor], groups: Sequence[Group],
          step: int) -> None:
    """``torch.optim.AdamW`` without ``amsgrad``."""
    for rows, (rate, decay) in _runs(groups, lambda group: (float(group["lr"]), group["weight_decay"])):
        if decay:
            values[rows].mul_(1 - rate * decay)
    _adam(values, grads, state, groups, step)


def _adam(values, grads, state, groups, step):
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    for rows, beta in _runs(groups, lambda group: group["betas"][0]):
        mean[rows].lerp_(grads[rows], 1 - beta)
    denominator = torch.empty_like(square)
    for rows, beta in _runs(groups, lambda group: group["betas"][1]):
        square[rows].mul_(beta).addcmul_(grads[rows], grads[rows], value=1 - beta)
        torch.sqrt(square[rows], out=denominator[rows]).div_((1 - beta ** step) ** 0.5)
    for rows, eps in _runs(groups, lambda group: group["eps"]):
        denominator[rows].add_(eps)
    for rows, (rate, beta) in _runs(groups, lambda group: (float(group["lr"]), group["betas"][0])):
        values[rows].addcdiv_(mean[rows], denominator[rows], value=-(rate / (1 - beta ** step)))


def adadelta(values: torch.Tensor, grads: torch.Tensor, state: dict[str, torch.Tensor], groups: Sequence[Group],
             step: int) -> None:
    """``torch.optim.Adadelta``."""
    grads, square, moved = _decayed(values, grads, groups), state["square_avg"], state["acc_delta"]
    for rows, rho in _runs(groups, lambda group: group["rho"]):
        square[rows].mul_(rho).addcmul_(grads[rows], grads[rows], value=1 - rho)
    deviation, delta = square.clone(), moved.clone()
    for rows, eps in _runs(groups, lambda group: group["eps"]):
        deviation[rows].add_(eps)
        delta[rows].add_(eps)
    delta.sqrt_().div_(deviation.sqrt_()).mul_(grads)
    for rows, rho in _runs(groups, lambda group: group["rho"]):
        moved[rows].mul_(rho).addcmul_(delta[rows], delta[rows], value=1 - rho)
    for rows, rate in _runs(groups, lambda group: float(group["lr"])):
        values[rows].add_(delta[rows], alpha=-rate)


#: Optimiser -> its update, the tensors of its state, and whether torch counts its steps.
UPDATES: dict[type, tuple[Callable[..., None], tuple[str, ...], bool]] = {
    torch.optim.SGD: (sgd, ("momentum_buffer",), False),
    torch.optim.Adam: (adam, ("exp_avg", "exp_avg_sq"), True),
    torch.optim.AdamW: (adamw, ("exp_avg", "exp_avg_sq"), True),
    torch.optim.Adadelta: (adadelta, ("square_avg", "acc_delta"), True),
}
