"""Random small networks of what can be trained: rows of features, images, sequences and words, of any odd sizes."""

from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import nn

#: What changes each element, and what a row.
ELEMENTS: tuple[Callable[[], nn.Module], ...] = (
    nn.ReLU, nn.GELU, lambda: nn.GELU("tanh"), nn.SiLU, nn.Sigmoid, nn.Tanh, nn.Softplus, nn.Mish)
MOST_FEATURES = 20
WORDS = 7


class Residual(nn.Sequential):
    """What parts give, and their input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the input's shape."""
        return x + super().forward(x)


class Twice(nn.Sequential):
    """Parts that are applied two times, so that their parameters have two gradients."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the input's shape."""
        return super().forward(super().forward(x))


class Product(nn.ModuleList):
    """The product of what two modules give, element by element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the shape that both give."""
        return self[0](x) * self[1](x)


class Joined(nn.ModuleList):
    """What modules give, one behind the other along the features of rows or sequences, or channels of images."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the features of both."""
        return torch.cat([each(x) for each in self], 1 if x.dim() == 4 else -1)


class Affine(nn.Module):
    """Parameters of features that factors and summands are: positions of a sequence, too."""

    def __init__(self, *shape: int, factor: bool = True) -> None:
        super().__init__()
        self.factor = nn.Parameter(1 + 0.1 * torch.randn(shape)) if factor else None
        self.summand = nn.Parameter(0.1 * torch.randn(shape))

    def extra_repr(self) -> str:
        """Shape, and whether there are factors."""
        return f"{list(self.summand.shape)}, factor={self.factor is not None}"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the input's shape."""
        return (x if self.factor is None else x * self.factor) + self.summand


class Attention(nn.Module):
    """Sequences that attend to themselves; ``causal``: to what came before alone."""

    def __init__(self, features: int, heads: int, dropout: float, causal: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(features, heads, dropout, batch_first=True)
        self.causal = causal

    def extra_repr(self) -> str:
        """What torch's own says nothing of."""
        return f"heads={self.attention.num_heads}, dropout={self.attention.dropout}, causal={self.causal}"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the input's shape."""
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1) if self.causal else None
        return self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]


class Recurrent(nn.Module):
    """What a recurrent layer gives at all times."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From (N, T, F) to (N, T, G)."""
        return self.layer(x)[0]


class Mean(nn.Module):
    """The mean over times, or over pixels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From (N, T, F) to (N, F), or from (N, C, H, W) to (N, C)."""
        return x.mean((2, 3)) if x.dim() == 4 else x.mean(1)


class Last(nn.Module):
    """The last of all times."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From (N, T, F) to (N, F)."""
        return x[:, -1]


class Models:
    """Draws networks.

    Parameters
    ----------
    pick : Random
        What decides.
    batch : int
        Samples of a batch, without which some norms are not defined.
    drops : bool
        Whether there may be dropout.
    """

    def __init__(self, pick: Random, batch: int, drops: bool) -> None:
        self.pick, self.batch, self.drops = pick, batch, drops

    def model(self, kind: str, shape: tuple[int, ...]) -> tuple[nn.Module, tuple[int, ...]]:
        """A network and the shape of a sample that it gives, of samples of this ``shape``.

        ``kind`` is rows (F), images (C, H, W), sequences (T, F) or words (T).
        """
        parts: list[Any] = []
        if kind == "words":
            parts.append(nn.Embedding(WORDS, self._features(), padding_idx=self.pick.choice((None, None, 0))))
            shape = (*shape, parts[0].embedding_dim)
        while len(shape) == 3:
            part, shape = self._image(*shape)
            parts.append(part)
            if len(parts) >= 2 and self.pick.random() < 0.6:
                parts.append(self.pick.choice((nn.Flatten, Mean))())
                shape = self._shape(parts[-1], shape)
        for _ in range(self.pick.randint(0, 3)):
            part = self._row(shape) if len(shape) == 1 or self.pick.random() < 0.4 else self._sequence(*shape)
            parts.append(part)
            shape = self._shape(part, shape)
        if len(shape) == 2 and self.pick.random() < 0.8:
            parts.append(self.pick.choice((nn.Flatten, Mean, Last))())
            shape = self._shape(parts[-1], shape)
        parts.append(self._linear(shape[-1], results := self.pick.randint(2, 12)))
        return nn.Sequential(*parts), (*shape[:-1], results)

    def _features(self):
        return self.pick.randint(1, MOST_FEATURES)

    @staticmethod
    def _shape(part: nn.Module, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a sample behind a part; a batch of two, so that norms are defined."""
        with torch.random.fork_rng(), torch.no_grad():
            return tuple(part.eval()(torch.zeros(2, *shape)).shape[1:])

    # --- Parts of rows and sequences -----------------------------------------------------------

    def _row(self, shape: tuple[int, ...]) -> nn.Module:
        """A part of the features of rows (F,) or of sequences (T, F)."""
        features, pick = shape[-1], self.pick
        made: list[Callable[[], nn.Module]] = [
            lambda: self._linear(features), lambda: self._linear(features), self._element,
            lambda: nn.LayerNorm(features, elementwise_affine=pick.random() < 0.8),
            lambda: nn.RMSNorm(features, eps=1e-5), lambda: Affine(features, factor=pick.random() < 0.7),
            lambda: Residual(self._linear(features, wide := self._features()), self._element(),
                             self._linear(wide, features)),
            lambda: Twice(self._linear(features, features), self._element()),
            lambda: nn.Sequential(self._linear(features, 2 * self._features()), nn.GLU(-1)),
            lambda: Product([self._linear(features, wide := self._features()),
                             nn.Sequential(self._linear(features, wide), self._element())]),
            lambda: Joined([self._linear(features), nn.Identity()]), lambda: nn.Softmax(-1)]
        if len(shape) == 1 and self.batch > 1:
            made += [lambda: nn.BatchNorm1d(features, momentum=pick.choice((0.1, 0.5)))] * 2
        if len(shape) == 1:
            made.append(lambda: nn.GroupNorm(self._divisor(features), features))
        if self.drops:
            made += [lambda: nn.Dropout(pick.choice((0.1, 0.5)))] * 2
        return pick.choice(made)()

    def _linear(self, features: int, others: int = 0) -> nn.Module:
        return nn.Linear(features, others or self._features(), bias=self.pick.random() < 0.8)

    def _element(self) -> nn.Module:
        return self.pick.choice(ELEMENTS)()

    def _divisor(self, number: int) -> int:
        return self.pick.choice([each for each in range(1, number + 1) if not number % each])

    def _sequence(self, times: int, features: int) -> nn.Module:
        """A part of sequences that is of several times."""
        pick, heads = self.pick, self._divisor(features)
        dropout = pick.choice((0.0, 0.1)) if self.drops else 0.0
        made: list[Callable[[], Any]] = [
            lambda: Attention(features, heads, dropout, pick.random() < 0.5),
            lambda: Residual(nn.LayerNorm(features), Attention(features, heads, dropout, pick.random() < 0.5)),
            lambda: nn.TransformerEncoderLayer(features, heads, self._features(), dropout, batch_first=True,
                                               activation=pick.choice(("relu", "gelu")),
                                               norm_first=pick.random() < 0.5),
            lambda: Recurrent(pick.choice((nn.LSTM, nn.GRU, nn.RNN))(features, pick.randint(1, 8), batch_first=True)),
            lambda: Affine(times, features, factor=False)]
        return pick.choice(made)()

    # --- Parts of images -----------------------------------------------------------------------

    def _image(self, channels: int, height: int, width: int) -> tuple[nn.Module, tuple[int, ...]]:
        """A part of images, and the shape that it gives."""
        pick, side = self.pick, min(height, width)
        made: list[Callable[[], nn.Module]] = [lambda: self._convolution(channels, side)] * 4
        made += [self._element, lambda: nn.GroupNorm(self._divisor(channels), channels),
                 lambda: Residual(nn.Conv2d(channels, channels, 1), self._element()),
                 lambda: Joined([nn.Conv2d(channels, pick.randint(1, 6), 1), nn.Identity()])]
        if self.batch * height * width > 1:
            made += [lambda: nn.BatchNorm2d(channels)] * 2
        if height * width > 1:
            made.append(lambda: nn.InstanceNorm2d(channels))
        if side > 1:
            made += [lambda: nn.MaxPool2d(2, pick.choice((1, 2))), lambda: nn.AvgPool2d(2, pick.choice((1, 2))),
                     lambda: nn.AdaptiveAvgPool2d(pick.choice((1, 2)) if not height % 2 and not width % 2 else 1)]
        if self.drops:
            made.append(lambda: nn.Dropout(0.2))
        part = pick.choice(made)()
        return part, self._shape(part, (channels, height, width))

    def _convolution(self, channels: int, side: int) -> nn.Module:
        pick = self.pick
        kernel = pick.choice([each for each in (1, 2, 3) if each <= side])
        dilation = 2 if kernel > 1 and 2 * (kernel - 1) < side and pick.random() < 0.2 else 1
        groups = pick.choice((1, 1, self._divisor(channels), channels))
        return nn.Conv2d(channels, groups * pick.randint(1, max(8 // groups, 1)), kernel, stride=pick.choice((1, 1, 2)),
                         padding=pick.randint(0, dilation * (kernel - 1)), dilation=dilation, groups=groups,
                         bias=pick.random() < 0.7)
