"""What runs model by model inside a job, and what all layers of a job share."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

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
    cut: dict[Any, Sequence[Any]] = {}         # what is one tensor stays one: attention asks whether query is key
    parts = [(x,) * count if axis is None else cut.setdefault((id(x), axis), x.chunk(count, axis))
             for x, axis in zip(leaves, axes, strict=True)]
    results = []
    for layer, own in zip(layers, zip(*parts, strict=True), strict=True):
        arguments, options = _pytree.tree_unflatten(list(own), tree)
        flat, shape = _pytree.tree_flatten(layer(*arguments, **options))
        results.append(flat)
    joined = [_join(peers, axis_of(i, peers[0])) if torch.is_tensor(peers[0]) else peers[0]
              for i, peers in enumerate(zip(*results, strict=True))]
    return _pytree.tree_unflatten(joined, shape)


def _join(peers, axis):
    """Tensors behind each other, in memory as the first: on that depends in which order torch sums gradients."""
    order = sorted(range(peers[0].dim()), key=lambda d: -peers[0].stride(d))
    whole = torch.cat([peer.permute(order) for peer in peers], order.index(axis))
    return whole.permute([order.index(d) for d in range(len(order))])
