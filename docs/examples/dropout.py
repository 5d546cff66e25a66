"""A transformer of two layers with dropout, trained by Adam; what is dropped follows from ``--seed`` and the step."""

import runpy
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

_LINES = runpy.run_path(str(Path(__file__).with_name("transformer.py")))
loss, batches = _LINES["loss"], _LINES["batches"]
LAYERS, WIDTH, HEADS, DROPOUT = 2, 16, 2, 0.1


class Classifier(nn.Module):
    """Lines of pixels become vectors with positions, which attend to each other; their mean says the class."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = nn.Linear(8, WIDTH)
        self.positions = nn.Parameter(0.1 * torch.randn(8, WIDTH))
        self.drop = nn.Dropout(DROPOUT)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=DROPOUT, activation="gelu",
                                           batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS)
        self.classes = nn.Linear(WIDTH, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """From images (N, 8, 8) to classes (N, 10)."""
        return self.classes(self.encoder(self.drop(self.lines(images) + self.positions)).mean(1))


def model() -> nn.Module:
    """In float32: formats come from the command's options."""
    torch.manual_seed(0)
    return Classifier()


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.Adam(parameters, lr=0.005)
