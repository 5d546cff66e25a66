"""One node of autograd that calls an operation of torch, and its gradient, for each model."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..once import once_differentiable


class Loop(torch.autograd.Function):
    """Calls a function for each model on its part of a batch, with its own weight and bias.

    An :class:`Operation` has ``forward(x, weight, bias)``, which returns the output and what its ``backward`` needs,
    and ``backward(kept, g, x, weight, wanted)``, which returns three gradients.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
                operations: Sequence["Operation"]) -> torch.Tensor:
        """``x`` (models * N, ...), ``weight`` and ``bias`` (models, ...) or None."""
        ctx.save_for_backward(x, weight)
        ctx.operations = operations
        outputs, ctx.kept = [], []
        for operation, *own in zip(operations, *_parts(len(operations), x, weight, bias), strict=True):
            y, kept = operation.forward(*own)
            outputs.append(y)
            ctx.kept.append(kept)
        return torch.cat(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x``, ``weight`` and ``bias``."""
        x, weight = ctx.saved_tensors
        return *gradients(x, weight, g, list(ctx.needs_input_grad[:3]), ctx.operations, ctx.kept), None


class Operation:
    """What :class:`Loop` calls for one model; ``forward`` and ``backward`` are functions.

    Parameters
    ----------
    forward, backward : callable
        See :class:`Loop`.
    """

    def __init__(self, forward: Callable[..., tuple[torch.Tensor, Any]],
                 backward: Callable[..., Sequence[torch.Tensor | None]]) -> None:
        self.forward, self.backward = forward, backward


def gradients(x: torch.Tensor, weight: torch.Tensor | None, g: torch.Tensor, wanted: list[bool],
              operations: Sequence[Operation], kept: Sequence[Any]) -> tuple[torch.Tensor | None, ...]:
    """Those ``wanted`` of all models' input, weight and bias, from that of the outputs, ``g``."""
    count = len(operations)
    x, weight, _ = _parts(count, x, weight, None)
    found = [operation.backward(own, top, *each, wanted) for operation, own, top, *each in
             zip(operations, kept, aligned(g.chunk(count)), x, weight, strict=True)]
    gx, gw, gb = zip(*found, strict=True)
    return (torch.cat(gx) if wanted[0] else None, torch.stack(gw) if wanted[1] else None,
            torch.stack(gb) if wanted[2] else None)


def _parts(count, x, weight, bias):
    """Of each model: its part of the batch, and its weight and bias or None."""
    nothing = (None,) * count
    return (aligned(x.chunk(count)), *(nothing if t is None else t.unbind(0) for t in (weight, bias)))


def aligned(parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Parts that begin where torch begins its own tensors: on that depend the low bits of some libraries."""
    return [part.clone() if part.data_ptr() % 64 else part for part in parts]
