"""The parameters of all models in one tensor, a row for each model."""

from collections.abc import Sequence

import torch
from torch import nn

#: float32 numbers to which a parameter's place is rounded up: 64 bytes, as torch aligns its own tensors.
_GRAIN = 16


class Parameters:
    """The parameters of models of one architecture, moved into one tensor with a row for each model.

    A model's parameters become views of its row. Layers that run all models at once ask for :meth:`stack`, a leaf of
    autograd whose gradient goes to the models' parameters at once: to autograd's users these alone have gradients.

    Parameters
    ----------
    models : sequence of Module
        Their parameters have equal shapes, model by model in one order.

    Attributes
    ----------
    trained : list of list of Parameter
        Of each model, those on the CPU in float32 that need gradients.
    values : Tensor
        (models, numbers): the rows of ``trained``; columns between two parameters are 0.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        every = list(zip(*(model.parameters() for model in models), strict=True))
        held = [peers for peers in every
                if all(p.dtype == torch.float32 and p.device.type == "cpu" for p in peers)]
        chosen = [peers for peers in held if all(p.requires_grad for p in peers)]
        self.count = len(models)
        self.trained = [list(own) for own in zip(*chosen, strict=True)] or [[] for _ in models]
        self._stacks: dict[int, torch.Tensor] = {}
        self.spreads: list[Spread] = []
        self.values, self.columns = self._move(chosen)
        self._move([peers for peers in held if not all(p.requires_grad for p in peers)])

    def _move(self, chosen):
        """Move parameters into a new tensor; (models, numbers) and the columns of each parameter."""
        columns, end = [], 0
        for peers in chosen:
            columns.append(slice(end, end + peers[0].numel()))
            end += -(-peers[0].numel() // _GRAIN) * _GRAIN
        values = torch.zeros(self.count, end)
        for peers, place in zip(chosen, columns, strict=True):
            stack = values[:, place].unflatten(1, peers[0].shape) if peers[0].dim() else values[:, place.start]
            for p, own in zip(peers, stack, strict=True):
                own.copy_(p.detach())
                p.data = own
            leaf = stack.detach()
            if all(p.requires_grad for p in peers):
                leaf.requires_grad_()
                self.spreads.append(Spread(peers))
                leaf.register_post_accumulate_grad_hook(self.spreads[-1])
            self._stacks[id(peers[0])] = leaf
        return values, columns

    def holds(self, parameter: torch.Tensor | None) -> bool:
        """Whether the first model's ``parameter`` has a stack."""
        return id(parameter) in self._stacks

    def stack(self, parameter: torch.Tensor | None) -> torch.Tensor | None:
        """Of all models, ``(models, *shape)``, by the first model's ``parameter``; None for None."""
        return None if parameter is None else self._stacks[id(parameter)]

    def rows(self, like: torch.Tensor) -> list[list[torch.Tensor]]:
        """Views of a tensor shaped as ``values``: of each model, one for each of its trained parameters."""
        return [[row[place].view(p.shape) for place, p in zip(self.columns, own, strict=True)]
                for row, own in zip(like, self.trained, strict=True)]


class Spread:
    """Gives the gradient of a stack to the parameters whose stack it is, as autograd would add it to theirs.

    Parameters
    ----------
    peers : sequence of Parameter
        One for each model.
    """

    def __init__(self, peers: Sequence[torch.Tensor]) -> None:
        self.peers = peers
        self._whole: torch.Tensor | None = None
        self._parts: Sequence[torch.Tensor] = ()

    def __call__(self, leaf: torch.Tensor) -> None:
        """After autograd has made the gradient of the stack ``leaf``."""
        whole, leaf.grad = leaf.grad, None
        parts = whole.unbind(0)
        for p, part in zip(self.peers, parts, strict=True):
            if p.grad is None:
                p.grad = part
            else:
                p.grad += part
        self._whole, self._parts = whole, parts

    def whole(self) -> torch.Tensor | None:
        """The parameters' gradients as one tensor, if they are the parts of the stack's last one."""
        if self._whole is None or any(p.grad is not part for p, part in zip(self.peers, self._parts, strict=True)):
            return None
        return self._whole

    def drop(self) -> None:
        """Give the last gradient up."""
        self._whole, self._parts = None, ()
