"""A transformer for ``python -m cosim train``: a digit is a sequence of its eight lines of pixels."""

from collections.abc import Iterable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import nn

LAYERS, WIDTH, HEADS, BATCH = 1, 16, 2, 16


class Classifier(nn.Module):
    """Lines of pixels become vectors with positions, which attend to each other; their mean says the class."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = nn.Linear(8, WIDTH)
        self.positions = nn.Parameter(0.1 * torch.randn(8, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS)
        self.classes = nn.Linear(WIDTH, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """From images (N, 8, 8) to classes (N, 10)."""
        return self.classes(self.encoder(self.lines(images) + self.positions).mean(1))


def model() -> nn.Module:
    """In float32: formats come from the command's options."""
    torch.manual_seed(0)
    return Classifier()


def loss(output: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Of the model's output and the targets of a batch."""
    return nn.functional.cross_entropy(output, classes)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and targets, the same at every call; all batches have one size."""
    digits = load_digits()
    images, classes = torch.tensor(digits.images, dtype=torch.float32) / 16, torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    for chosen in order.split(BATCH)[:-1]:
        yield images[chosen], classes[chosen]


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
