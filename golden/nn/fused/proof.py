"""Which quicker ways of computing have the bits of torch's own on this machine.

In what order a library adds depends on the processor, on its version and on the sizes, but not on the numbers. So a way
that gives equal bits on random numbers of given sizes gives them on all: another order of rounding would show.
"""

import copy
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch

from .parameters import Parameters

_FOUND: dict[Hashable, bool] = {}


def proven(key: Hashable, proof: Callable[[torch.Generator], bool]) -> bool:
    """Whether ``proof`` holds, asked once for each ``key`` and number of torch's threads.

    Parameters
    ----------
    key : hashable
        What is compared, with all its sizes.
    proof : callable
        Takes a generator for random numbers; whether the bits are equal.
    """
    key = key, torch.get_num_threads()
    found = _FOUND.get(key)
    if found is None:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            found = _FOUND[key] = proof(torch.Generator().manual_seed(len(_FOUND)))
    return found


def same_bits(ours: torch.Tensor, theirs: Any) -> bool:
    """Whether a float32 tensor has the bits of another, or of the stack of several."""
    theirs = theirs if torch.is_tensor(theirs) else torch.stack(list(theirs))
    return torch.equal(ours.contiguous().view(torch.int32), theirs.contiguous().view(torch.int32))


def same_layers(layers: Sequence[torch.nn.Module], x: torch.Tensor, top: torch.Tensor,
                alone: Callable[[Any, torch.Tensor], torch.Tensor],
                together: Callable[[Any, Parameters], Callable[[torch.Tensor], torch.Tensor]]) -> bool:
    """Whether layers have the same outputs, gradients and buffers in one call as each ``alone``.

    Parameters
    ----------
    layers : sequence of Module
        One of each model; they are run.
    x, top : Tensor
        Inputs of all models, behind each other, and gradients of their outputs.
    alone, together : callable
        From a layer and its part of ``x`` to its output; from layers and their parameters to what runs all of ``x``.
    """
    twins, count = copy.deepcopy(layers), len(layers)
    with torch.enable_grad():
        each = []
        for layer, own, g in zip(layers, x.chunk(count), top.chunk(count), strict=True):
            own = own.clone().requires_grad_()
            y = alone(layer, own)
            each.append((y, *torch.autograd.grad(y, [own, *layer.parameters()], g.clone())))
        held = Parameters(twins)
        y = together(twins, held)(x.requires_grad_())
        found = (y, *torch.autograd.grad(y, [x, *(held.stack(p) for p in twins[0].parameters())], top))
    joins = torch.cat, torch.cat, *(torch.stack for _ in found[2:])
    return (all(same_bits(ours, join(theirs)) for ours, join, theirs in
                zip(found, joins, zip(*each, strict=True), strict=True))
            and all(same_bits(own, other) for layer, twin in zip(layers, twins, strict=True)
                    for own, other in zip(layer.buffers(), twin.buffers(), strict=True) if own.is_floating_point()))
