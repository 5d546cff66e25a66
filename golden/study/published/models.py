"""Models of the tasks: each maps the inputs of a batch to logits, the last dimension classes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import resnet
from . import folders
from .task import kind_of, options


def mlp(outputs: int, *, sizes: tuple[int, ...]) -> nn.Module:
    """Linear layers of these widths with ReLU between: (N, sizes[0]) -> (N, outputs)."""
    layers: list[nn.Module] = []
    for a, b in zip(sizes, (*sizes[1:], outputs), strict=True):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def resnet20(outputs: int) -> nn.Module:
    """ResNet-20 for 32 x 32 images."""
    return resnet.resnet20(outputs)


def resnet50(outputs: int) -> nn.Module:
    """The ResNet-50 for 32 x 32 images of the HBFP emulator: three stages of eight bottlenecks, 16, 32, 64 wide."""
    parts: list[nn.Module] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for width in (16, 32, 64):
        for index in range(8):
            parts.append(resnet.Bottleneck(channels, width, 2 if width != 16 and index == 0 else 1))
            channels = 4 * width
    return _started(nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, outputs)))


class _Dense(nn.Module):
    """A layer of a DenseNet: its outputs are put behind its inputs."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(channels), nn.Conv2d(channels, growth, 3, padding=1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat((x, self.conv(torch.relu(self.norm(x)))), 1)


def densenet40(outputs: int, *, growth: int = 12, layers: int = 12) -> nn.Module:
    """DenseNet-40 for 32 x 32 images (Huang et al. 2017): three blocks of 12 layers, without bottlenecks."""
    channels = 2 * growth
    parts: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1, bias=False)]
    for block in range(3):
        for _ in range(layers):
            parts.append(_Dense(channels, growth))
            channels += growth
        parts += [nn.BatchNorm2d(channels), nn.ReLU()]
        if block < 2:
            parts += [nn.Conv2d(channels, channels, 1, bias=False), nn.AvgPool2d(2)]
    return _started(nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, outputs)))


def _started(net):
    """First weights as He et al. draw them."""
    for part in net.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
    return net


class LanguageModel(nn.Module):
    """LSTM layers whose state goes on from batch to batch: (N, T) words -> (N, T, words) logits of the next.

    The state is a buffer, so that a checkpoint has it. ``restart()`` begins with zeros.
    """
    state: torch.Tensor

    def __init__(self, words: int, width: int, layers: int, dropout: float, tied: bool) -> None:
        super().__init__()
        self.embed, self.drop = nn.Embedding(words, width), nn.Dropout(dropout)
        self.lstm = nn.LSTM(width, width, layers, dropout=dropout if layers > 1 else 0.0, batch_first=True)
        self.head = nn.Linear(width, words)
        if tied:
            self.head.weight = self.embed.weight
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)
        self.register_buffer("state", torch.zeros(2, layers, 0, width))

    def restart(self, rows: int) -> None:
        """Forget what was read, before batches of ``rows``."""
        _, layers, _, width = self.state.shape
        self.state = self.state.new_zeros(2, layers, rows, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, T) -> (N, T, words)."""
        h, c = self.state
        y, (h, c) = self.lstm(self.drop(self.embed(x)), (h, c))
        self.state = torch.stack((h, c)).detach()
        return self.head(self.drop(y))


def lstm(outputs: int, *, width: int = 650, layers: int = 2, dropout: float = 0.5, tied: bool = False) -> nn.Module:
    """The LSTM language model of Zaremba et al. 2014, by default of its medium size."""
    return LanguageModel(outputs, width, layers, dropout, tied)


#: Kinds of models.
MODELS: dict[str, Callable[..., Any]] = {
    "mlp": mlp, "resnet20": resnet20, "resnet50": resnet50, "densenet40": densenet40, "lstm": lstm}
#: Those that a folder holds.
HELD: dict[str, Callable[..., nn.Module]] = {
    "classifier": folders.classifier, "causal": folders.causal, "images": folders.images}
#: Layers of these that stay dense where weights are pruned, by name: what gives the logits, and what sees pixels.
DENSE = ("*lm_head", "*classifier", "*patch_embeddings*")


def model(table: Mapping[str, Any], outputs: int, folder: Path | None = None) -> nn.Module:
    """The model of the table ``model`` of a task; torch's global seed decides what is drawn.

    Parameters
    ----------
    table : dict
        ``kind``, one of :data:`MODELS` or :data:`HELD`, and its options.
    outputs : int
        Classes, or words.
    folder : path, optional
        Where a model of :data:`HELD` lies.
    """
    build = kind_of("model", table, MODELS | HELD)
    given = options(build, table, "model.")
    return build(outputs, folder) if table["kind"] in HELD else build(outputs, **given)
