"""GPT-2 with 124 million parameters, not trained, on 128 words; it needs transformers (the extra ``experiments``)."""

import torch
from torch import nn

from hbfp.golden.perf.pods.networks import torchvision

torchvision()                                              # which transformers imports, too, where it is there
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402


class Logits(nn.Module):
    """The logits of a model of transformers."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """(N, L) -> (N, L, words)."""
        return self.model(words).logits


def model() -> nn.Module:
    torch.manual_seed(1)
    return Logits(GPT2LMHeadModel(GPT2Config(use_cache=False)))


def inputs() -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randint(50257, (1, 128)),)
