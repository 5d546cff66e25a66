"""One step of every model's optimiser."""

from collections.abc import Iterable

import torch

from .job import Job
from .linear import FusedLinear


class Step:
    """One step of every model's optimiser, in fewer and larger operations; the same bits.

    Serves any optimisers. Those that gain are ``torch.optim.SGD`` over a job of linear layers:
    momentum runs over all models at once, and learning rates, which schedulers may change at any
    time, and weight decay stay each model's own.

    Parameters
    ----------
    job : Job
        The job.
    optimisers : sequence of torch.optim.Optimizer
        One per model, in the models' order.
    """

    def __init__(self, job: Job, optimisers: Iterable[torch.optim.Optimizer]) -> None:
        self.optimisers = list(optimisers)
        if len(self.optimisers) != job.count:
            raise ValueError(f"Optimisers must be {job.count}, one per model, not {len(self.optimisers)}")
        layers = [part for part in job.net.modules() if isinstance(part, FusedLinear)]
        self.stacks = [[getattr(layer, name) for layer in part.layers] for part in layers for name in ("weight", "bias")
                       if getattr(part.layers[0], name) is not None]
        self.buffers: list[torch.Tensor] | None = None
        held = {id(p) for stack in self.stacks for p in stack}
        groups = [optimiser.param_groups for optimiser in self.optimisers]
        first = groups[0][0]
        self.joint = all(
            type(optimiser) is torch.optim.SGD and len(group) == 1 and not optimiser.state
            and {id(p) for p in group[0]["params"]} <= held
            and group[0]["momentum"] == first["momentum"] != 0 and group[0]["dampening"] == 0
            and not (group[0]["nesterov"] or group[0]["maximize"] or group[0]["differentiable"])
            and not optimiser._optimizer_step_pre_hooks and not optimiser._optimizer_step_post_hooks
            for optimiser, group in zip(self.optimisers, groups, strict=True)) and \
            sum(len(group[0]["params"]) for group in groups) == len(held)

    @torch.no_grad()
    def __call__(self) -> None:
        """Update every model's parameters from their gradients."""
        if not self.joint or any(p.grad is None for stack in self.stacks for p in stack):
            for optimiser in self.optimisers:
                optimiser.step()
            return
        options = [optimiser.param_groups[0] for optimiser in self.optimisers]
        grads = [_together([p.grad for p in stack]) for stack in self.stacks]
        for i, option in enumerate(options):
            if option["weight_decay"]:
                for grad, stack in zip(grads, self.stacks, strict=True):
                    grad[i] = grad[i].add(stack[i], alpha=option["weight_decay"])
        if self.buffers is None:
            self.buffers = [grad.clone() for grad in grads]
            self.models = [([stack[i] for stack in self.stacks], [buffer[i] for buffer in self.buffers])
                           for i in range(len(options))]
            for optimiser, (parameters, buffers) in zip(self.optimisers, self.models, strict=True):
                for p, buffer in zip(parameters, buffers, strict=True):
                    optimiser.state[p]["momentum_buffer"] = buffer
        else:
            torch._foreach_mul_(self.buffers, options[0]["momentum"])
            torch._foreach_add_(self.buffers, grads)
        for option, (parameters, buffers) in zip(options, self.models, strict=True):
            torch._foreach_add_(parameters, buffers, alpha=-option["lr"])

    def zero_grad(self) -> None:
        """Drop every model's gradients, as the optimisers' own ``zero_grad`` does."""
        if not self.joint:
            for optimiser in self.optimisers:
                optimiser.zero_grad()
            return
        for stack in self.stacks:
            for p in stack:
                p.grad = None


def _together(parts):
    """The tensor whose slices ``parts`` are, or a copy of them if they lie apart."""
    first, size = parts[0], parts[0].numel() * 4
    start = first.data_ptr()
    if all(part.is_contiguous() and part.data_ptr() == start + i * size for i, part in enumerate(parts)):
        return first.as_strided((len(parts), *first.shape), (first.numel(), *first.stride()))
    return torch.stack(parts)
