"""A transformer of tokens for ``python -m cosim train``: a digit is sixteen patches, each one of seventeen shades."""

from collections.abc import Iterable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import nn

LAYERS, WIDTH, HEADS, BATCH = 1, 16, 2, 8
PATCHES, SHADES = 16, 17


class Classifier(nn.Module):
    """Tokens and their places become vectors, which attend to each other; their mean says the class."""

    def __init__(self) -> None:
        super().__init__()
        self.shades, self.places = nn.Embedding(SHADES, WIDTH), nn.Embedding(PATCHES, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS)
        self.classes = nn.Linear(WIDTH, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """From tokens (N, 16) to classes (N, 10)."""
        return self.classes(self.encoder(self.shades(tokens) + self.places(torch.arange(PATCHES))).mean(1))


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
    patches = torch.tensor(digits.images).unflatten(1, (4, 2)).unflatten(3, (4, 2)).mean((2, 4))
    tokens, classes = patches.round().long().flatten(1), torch.tensor(digits.target)
    order = torch.randperm(len(tokens), generator=torch.Generator().manual_seed(1))
    for chosen in order.split(BATCH)[:-1]:
        yield tokens[chosen], classes[chosen]


def optimiser(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Of the model's parameters."""
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
