"""A transformer that learns Python's own library, character by character: which format does it need?

``python -m golden compare docs/examples/characters.py --epochs 4`` answers. The text is the source of a few modules of
the Python that runs, so that nothing is downloaded; another version of Python has another text.
"""

import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

#: Modules of the standard library: to learn from, and to be judged by.
LEARN = "argparse", "ast", "datetime", "dis", "doctest", "inspect", "pdb", "pickle", "tarfile", "typing"
JUDGE = "zipfile"
#: Characters that a model sees at once, sequences of a batch, steps of an epoch, epochs, and sequences that judge.
LENGTH, BATCH, STEPS, EPOCHS, JUDGED = 64, 32, 125, 4, 512
#: Printable ASCII from a space to a tilde, after a newline; all else counts as a space.
CHARACTERS = 96
WIDTH, HEADS, LAYERS = 64, 4, 2


def _text(*names: str) -> torch.Tensor:
    """Characters of modules, as numbers below ``CHARACTERS``."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = "".join((folder / f"{name}.py").read_text(encoding="utf-8") for name in names)
    return torch.tensor([0 if c == "\n" else ord(c) - 31 if " " <= c <= "~" else 1 for c in text])


def _pieces(text: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences (count, LENGTH) from places spread over the text, and the characters that follow each."""
    starts = torch.randint(len(text) - LENGTH, (count, 1), generator=torch.Generator().manual_seed(0))
    places = starts + torch.arange(LENGTH)
    return text[places], text[places + 1]


class Transformer(nn.Module):
    """Encoder layers under a causal mask: (N, LENGTH) characters -> (N, LENGTH, CHARACTERS) logits of the next."""

    def __init__(self) -> None:
        super().__init__()
        self.characters, self.places = nn.Embedding(CHARACTERS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0, batch_first=True,
                                                               norm_first=True) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CHARACTERS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of the next character at each place."""
        y = self.characters(x) + self.places(torch.arange(LENGTH).expand_as(x))
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        for layer in self.layers:
            y = layer(y, src_mask=mask, is_causal=True)
        return self.head(self.norm(y))


def model() -> nn.Module:
    """The transformer in float32; its first weights are drawn from torch's generator, whose seed the command sets."""
    return Transformer()


def loss(output: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the characters that follow."""
    return nn.functional.cross_entropy(output.flatten(0, 1), following.flatten())


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """What an epoch learns from."""
    x, y = _pieces(_text(*LEARN), BATCH * STEPS)
    yield from zip(x.split(BATCH), y.split(BATCH), strict=True)


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.AdamW(parameters, lr=2e-3)


def schedule(optimiser: torch.optim.Optimizer) -> Any:
    """The rate falls to 0 on a cosine."""
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS * STEPS)


def metric(net: nn.Module) -> float:
    """bits a character"""
    x, y = _pieces(_text(JUDGE), JUDGED)
    found = [loss(net(a), b).item() for a, b in zip(x.split(64), y.split(64), strict=True)]
    return sum(found) / len(found) / torch.tensor(2.0).log().item()


def better() -> str:
    """Fewer bits say more of the text."""
    return "lower"
