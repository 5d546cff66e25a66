"""What runs model by model inside a job, and what all layers of a job share."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

from ..once import unviewed
from .parameters import Parameters


class Fused(nn.Module):
    """A layer of a job; attributes that it lacks are those of the first model's layer.

    Parameters
    ----------
    layers : sequence of Module
        The same layer of each model.
    parameters : Parameters
        Of the models.
    """

    def __init__(self, layers: Sequence[nn.Module], parameters: Parameters) -> None:
        super().__init__()
        self.layers, self.count, self.held = list(layers), len(layers), parameters

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            found = getattr(self.__dict__["layers"][0], name)
            if not torch.is_tensor(found):
                return found
            if not self.held.holds(found):
                raise AttributeError(f"{name!r} is a tensor of each model's own; a job has none") from None
            return self.held.stack(found)


class Each(Fused):
    """A layer that runs model by model, each on its part of the batch: the same computation by construction."""

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Tensors whose first dimension is the batch are cut along it, others go to every model; outputs are joined."""
        leaves, tree = _pytree.tree_flatten((inputs, options))
        batch = next((len(x) for x in leaves if torch.is_tensor(x) and x.dim()), 0)
        cut = [torch.is_tensor(x) and x.dim() > 0 and len(x) == batch for x in leaves]
        return run_each(self.layers, leaves, tree, [0 if part else None for part in cut], lambda index, x: 0)


class EachRecurrent(Fused):
    """A recurrent layer, model by model: the batch is the first dimension of its input, the second of its states."""

    def forward(self, input: torch.Tensor, hx: Any = None) -> Any:
        """(models * N, L, I) and states (layers, models * N, H) -> output and states."""
        if not torch.is_tensor(input):
            raise TypeError(f"Input of a recurrent layer in a job must be a tensor, not {type(input).__name__}")
        leaves, tree = _pytree.tree_flatten(((input,) if hx is None else (input, hx), {}))
        return run_each(self.layers, leaves, tree, [0] + [1] * (len(leaves) - 1), lambda index, x: min(index, 1))


def run_each(layers: Sequence[nn.Module], leaves: Sequence[Any], tree: Any, axes: Sequence[int | None],
             axis_of: Callable[[int, torch.Tensor], int]) -> Any:
    """Call each of ``layers`` with its parts of the ``leaves`` and join what they return, however it is nested.

    Parameters
    ----------
    layers : sequence of Module
        One for each model.
    leaves, tree
        Arguments and options, flattened.
    axes : sequence of int or None
        Along which each leaf is cut; None goes to every model.
    axis_of : callable
        From number and tensor of an output to the dimension that it is joined along.
    """
    count = len(layers)
    cut: dict[Any, _Parts] = {}                # what is one tensor stays one: attention asks whether query is key
    for x, axis in zip(leaves, axes, strict=True):
        if axis is not None and (id(x), axis) not in cut:
            cut[id(x), axis] = _Parts(x, count, axis)
    parts = [(x,) * count if axis is None else cut[id(x), axis].parts for x, axis in zip(leaves, axes, strict=True)]
    results = []
    for layer, own in zip(layers, zip(*parts, strict=True), strict=True):
        arguments, options = _pytree.tree_unflatten(list(own), tree)
        flat, shape = _pytree.tree_flatten(layer(*arguments, **options))
        results.append(flat)
    for each in cut.values():
        each.put_back()
    joined = [_join(peers, axis_of(i, peers[0]), cut.values()) if torch.is_tensor(peers[0]) else peers[0]
              for i, peers in enumerate(zip(*results, strict=True))]
    return _pytree.tree_unflatten(joined, shape)


def _join(peers, axis, cut):
    """Tensors behind each other, in memory as the first: on that depends in which order torch sums gradients. What the
    layers gave back as they got it, changed in place or not, is the whole that they had the parts of."""
    for each in cut:
        if all(peer is part for peer, part in zip(peers, each.parts, strict=True)):
            return each.whole
    order = sorted(range(peers[0].dim()), key=lambda d: -peers[0].stride(d))
    whole = torch.cat([peer.permute(order) for peer in peers], order.index(axis))
    return whole.permute([order.index(d) for d in range(len(order))])


class _Parts:
    """A tensor cut along an axis, in the same memory, so that a layer may change its part in place."""

    def __init__(self, x: torch.Tensor, count: int, axis: int) -> None:
        self.whole, self.axis = x, axis
        # Autograd refuses to change one of several views in place.
        self.viewed = not (torch.is_grad_enabled() and x.is_floating_point())
        self.parts = x.chunk(count, axis) if self.viewed else _Cut.apply(x, count, axis)
        self.versions = [part._version for part in self.parts]

    def put_back(self) -> None:
        """Make the whole, which has the parts' numbers already, the outcome of what has changed them."""
        if not self.viewed and [part._version for part in self.parts] != self.versions:
            _Put.apply(self.whole, self.axis, *self.parts)


class _Cut(torch.autograd.Function):
    """Parts of a tensor that autograd takes for tensors of their own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, count: int, axis: int) -> tuple[torch.Tensor, ...]:
        ctx.axis = axis
        return tuple(unviewed(part) for part in x.chunk(count, axis))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return torch.cat(gradients, ctx.axis), None, None


class _Put(torch.autograd.Function):
    """What :class:`_Cut` has cut, after its parts were changed."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, axis: int, *parts: torch.Tensor) -> torch.Tensor:
        ctx.count, ctx.axis = len(parts), axis
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        return None, None, *g.chunk(ctx.count, ctx.axis)
