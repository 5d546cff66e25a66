"""Dropout that draws the same numbers alone and in a job."""

import torch
from torch import nn

from ..options import Model
from .each import Each, Fused


class SeededDropout(nn.Module):
    """Dropout with a generator of its own, so that a model draws the same numbers alone and in a job.

    Parameters
    ----------
    p : float
        Share of elements set to 0 while training.
    seed : int
        Seed of the generator.
    """

    def __init__(self, p: float = 0.5, seed: int = 0) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p must be 0 to below 1, not {p!r}")
        self.p, self.seed = p, seed
        self.register_buffer("state", torch.Generator().manual_seed(seed).get_state())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape of ``x``."""
        if not self.training or not self.p:
            return x
        return x * self.factors(x.shape, x.device)

    def factors(self, shape: torch.Size, device: torch.device) -> torch.Tensor:
        """What the next tensor of ``shape`` is multiplied by: 0, or 1 / (1 - p)."""
        generator = torch.Generator()
        generator.set_state(self.state)
        keep = torch.rand(shape, generator=generator) >= self.p
        self.state.copy_(generator.get_state())
        return keep.to(device) / (1 - self.p)


class FusedDropout(Fused):
    """:class:`SeededDropout` of several models, each with its own share and generator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape of ``x``."""
        if not any(layer.p and layer.training for layer in self.layers):
            return x
        rows = x.reshape(self.count, -1)
        factors = torch.ones_like(rows)
        for layer, own in zip(self.layers, factors, strict=True):
            if layer.p and layer.training:
                own.copy_(layer.factors(own.shape, x.device))
        return x * factors.view(x.shape)


class NoDropout(Each):
    """``torch.nn.Dropout`` that drops nothing, as a job asks for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``."""
        return super().forward(x) if any(layer.p for layer in self.layers) else x


def seed_dropout(module: Model, seed: int = 0) -> Model:
    """Replace every ``nn.Dropout`` inside ``module`` by :class:`SeededDropout`, in place: number i gets ``seed + i``.

    Returns
    -------
    Module
        ``module``.
    """
    found = [(parent, name, part) for parent in module.modules() for name, part in parent.named_children()
             if type(part) is nn.Dropout]
    for number, (parent, name, part) in enumerate(found):
        setattr(parent, name, SeededDropout(part.p, seed + number))
    return module
