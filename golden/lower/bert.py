"""The encoder of BERT by its configuration: what multiplies matrices, and nothing else."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Config:
    """Shape of an encoder; the inner width of its feed-forward part is four times the outer."""
    layers: int
    width: int
    heads: int


CONFIGS = {"bert-medium": Config(8, 512, 8), "bert-base": Config(12, 768, 12), "bert-large": Config(24, 1024, 16)}


class Layer(nn.Module):
    """Self-attention and the feed-forward part, each with its residual and norm."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        q, k, v = (part(x).view(batch, tokens, self.heads, -1).transpose(1, 2)
                   for part in (self.query, self.key, self.value))
        scores = (q @ k.transpose(2, 3) / (width // self.heads) ** 0.5).softmax(-1)
        mixed = (scores @ v).transpose(1, 2).reshape(batch, tokens, width)
        x = self.norms[0](x + self.out(mixed))
        return self.norms[1](x + self.down(nn.functional.gelu(self.up(x))))


class Bert(nn.Module):
    """All layers of an encoder, on embedded tokens of shape (batch, tokens, width)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
