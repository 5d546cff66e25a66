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
    """Self-attention and the feed-forward part, each with its residual and norm; (batch, tokens, width) to the same.

    Heads that are ``apart`` are products of their own, not copies of one; the numbers are the same.
    """

    def __init__(self, config: Config, apart: bool = False) -> None:
        super().__init__()
        width = config.width
        self.heads, self.apart = config.heads, apart
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        q, k, v = (part(x).view(batch, tokens, self.heads, -1).transpose(1, 2)
                   for part in (self.query, self.key, self.value))
        if self.apart:
            scores = torch.stack([q[:, head] @ k[:, head].transpose(1, 2) for head in range(self.heads)], 1)
        else:
            scores = q @ k.transpose(2, 3)
        scores = (scores / (width // self.heads) ** 0.5).softmax(-1)
        if self.apart:
            mixed = torch.stack([scores[:, head] @ v[:, head] for head in range(self.heads)], 1)
        else:
            mixed = scores @ v
        mixed = mixed.transpose(1, 2).reshape(batch, tokens, width)
        x = self.norms[0](x + self.out(mixed))
        return self.norms[1](x + self.down(nn.functional.gelu(self.up(x))))


class Bert(nn.Module):
    """All layers of an encoder, on embedded tokens of shape (batch, tokens, width)."""

    def __init__(self, config: Config, apart: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(config, apart) for _ in range(config.layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Pretraining(nn.Module):
    """An encoder whose heads are apart, with what pretraining puts on top of it.

    That is the layer for masked words, but not the product with the vocabulary, whose weights are the embedding's, and
    whether a sentence follows: results of shapes (batch, tokens, width) and (batch, 2).
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.encoder, self.words = Bert(config, True), nn.Linear(config.width, config.width)
        self.pool, self.follows = nn.Linear(config.width, config.width), nn.Linear(config.width, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.encoder(x)
        return nn.functional.gelu(self.words(x)), self.follows(torch.tanh(self.pool(x[:, 0])))
