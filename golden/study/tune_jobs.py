"""Trials of one architecture that train together, in jobs that fit the memory."""

from functools import partial
from typing import Any

import torch

from ..nn import fused
from .tune_model import Model


class Group:
    """Trials of one architecture that train together: a job, or one by one where that cannot be.

    Parameters
    ----------
    members : dict of int to tuple
        Trial number -> model and optimiser.

    Attributes
    ----------
    why : str
        Why they train one by one; empty for a job.
    """

    def __init__(self, members: dict[int, tuple[torch.nn.Module, torch.optim.Optimizer]]) -> None:
        self.members, self.why, self.job = members, "", None
        nets, optimisers = zip(*members.values(), strict=True)
        if len(nets) > 1:
            try:
                self.job = fused.fuse(nets)
                self.step = fused.Step(self.job, optimisers)
            except ValueError as error:
                self.why = str(error)

    def train(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """One step of every trial on one batch."""
        if self.job is not None:
            self.step.zero_grad()
            fused.cross_entropy(self.job(x, shared=True), y.repeat(self.job.count), self.job.count).backward()
            self.step()
            return
        for net, optimiser in self.members.values():
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimiser.step()

    def text(self) -> str:
        """Who trains how, in one line."""
        numbers = ", ".join(map(str, self.members))
        if len(self.members) == 1:
            return f"trial {numbers}: alone"
        return f"trials {numbers}: " + ("one job" if self.job is not None else f"one by one; {self.why}")

    def mode(self, training: bool) -> None:
        """Training or evaluation mode of every model."""
        for net, _ in self.members.values():
            net.train(training)
        if self.job is not None:
            self.job.train(training)


def most_together(net: torch.nn.Module, x: torch.Tensor, memory: int) -> int:
    """Models of one kind that fit ``memory`` bytes while they train on ``x``, 1 at least.

    An estimate: parameters, with a gradient and two numbers of optimiser state for each, and three times what a forward
    pass keeps for the backward pass: the tensors themselves, their gradients, and what an operation needs in passing.
    """
    kept = 0

    def count(tensor):
        nonlocal kept
        kept += tensor.numel() * tensor.element_size()
        return tensor
    state = [buffer.clone() for buffer in net.buffers()]
    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        y = net(x)
    kept += y.numel() * y.element_size()
    for buffer, old in zip(net.buffers(), state, strict=True):
        buffer.copy_(old)                              # statistics and noise as before
    own = sum(p.numel() * p.element_size() for p in net.parameters())
    return max(1, memory // (4 * own + 3 * kept))


def groups_of(members: dict[int, Any], model: Model, memory: int) -> list[Group]:
    """Trials cut into jobs: by architecture, then by memory."""
    x = model.data[0][:model.batch]
    kinds: dict[str, list[int]] = {}
    for number, (net, _) in members.items():
        kinds.setdefault(fused.signature(net), []).append(number)
    found = []
    for numbers in kinds.values():
        most = model.call("forward", partial(most_together, members[numbers[0]][0], x, memory))
        for first in range(0, len(numbers), most):
            found.append(Group({number: members[number] for number in numbers[first:first + most]}))
    return found
