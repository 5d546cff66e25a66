"""Dropout that draws the same numbers alone and in a job."""

import torch
from torch import nn


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
        generator = torch.Generator()
        generator.set_state(self.state)
        keep = torch.rand(x.shape, generator=generator) >= self.p
        self.state.copy_(generator.get_state())
        return x * (keep.to(x.device) / (1 - self.p))
