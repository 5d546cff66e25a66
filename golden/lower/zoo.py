"""Models to run on the accelerator: a few by name, and those of a user's file."""

import re

import torch
from torch import nn

from hbfp.golden.study.resnet import ResNet50, resnet20
from hbfp.golden.study.tasks import load

from .bert import CONFIGS, Bert
from .names import IMAGES, MOST, PRODUCT, SIZED, STEPS, WIDTH, ZOO
from .source import Source, read

#: Epochs, batch size, and learning rate of the models that are trained here.
EPOCHS, BATCH, RATE = 2, 64, 5e-3


class _Transformer(nn.Module):
    """Two encoder layers over embedded words, and a class for each sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(64, 32)
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """(N, L) -> (N, 10)."""
        return self.head(self.layers(self.words(words)).mean(1))


class _Lstm(nn.Module):
    """An LSTM over quarters of an image, two rows of pixels each, and a class from its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(16, 32, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        """(N, L, 16) -> (N, 10)."""
        return self.head(self.cells(steps)[0][:, -1])


def _trained(model, x, classes):
    """A model after a few epochs of Adam, in evaluation."""
    with torch.enable_grad():
        optimiser = torch.optim.Adam(model.parameters(), RATE)
        for _ in range(EPOCHS):
            for pick in torch.randperm(len(x)).split(BATCH):
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x[pick]), classes[pick]).backward()
                optimiser.step()
    return model.eval()


def _mlp():
    x, classes, test, _ = load("digits")
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    return _trained(model, x, classes), (test,)


def _cnn():
    x, classes, test, _ = load("digits")
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10))
    return _trained(model, x.view(-1, 1, 8, 8), classes), (test.view(-1, 1, 8, 8),)


def _enlarged(images):
    """Digits of 8 x 8 pixels as pictures of 32 x 32 in three colours."""
    return nn.functional.interpolate(images.view(-1, 1, 8, 8), size=(32, 32)).repeat(1, 3, 1, 1)


def _resnet20():
    x, classes, test, _ = load("digits")
    return _trained(resnet20(), _enlarged(x), classes), (_enlarged(test[:IMAGES]),)


def _resnet50(batch=1):
    return ResNet50().eval(), (torch.randn(batch, 3, 224, 224),)


def _bert(batch=1):
    config = CONFIGS["bert-base"]
    return Bert(config).eval(), (torch.randn(batch, 128, config.width),)


class _LastState(nn.Module):
    """An LSTM as wide as its inputs, and its last state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cells = nn.LSTM(width, width, batch_first=True)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        """(N, L, width) -> (N, width)."""
        return self.cells(steps)[0][:, -1]


def _wide_lstm(batch=1):
    return _LastState(WIDTH).eval(), (torch.randn(batch, STEPS, WIDTH),)


def _product(m, k, n):
    """One matrix product (m, k) by (k, n), of random numbers."""
    return nn.Linear(k, n, bias=False).eval(), (torch.randn(m, k),)


def _transformer():
    return _Transformer().eval(), (torch.randint(64, (2, 16)),)


def _lstm():
    test = load("digits")[2][:IMAGES]
    return _Lstm().eval(), (test.view(-1, 4, 16)[:, :3],)


_MAKERS = {"mlp": _mlp, "cnn": _cnn, "resnet20": _resnet20, "transformer": _transformer, "lstm": _lstm,
           "resnet50": _resnet50, "bert-base": _bert, "lstm-2048": _wide_lstm}


#: A product of any shape has a name, too.
_PRODUCT = re.compile(r"gemm-([1-9]\d{0,5})x([1-9]\d{0,5})x([1-9]\d{0,5})")


def zoo(name: str) -> Source:
    """A model that ``ZOO`` lists, or ``gemm-MxKxN``, and its inputs, the same at every call.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    product, (own, _, batch) = _PRODUCT.fullmatch(name), name.partition(":")
    sized = batch.isdecimal() and 0 < int(batch) <= MOST and own in SIZED
    if name not in _MAKERS and not product and not sized:
        raise ValueError(f"Model must be one of {', '.join(ZOO)}, {' and '.join(SIZED)} perhaps with a batch of 1 to "
                         f"{MOST} behind a colon, {PRODUCT} or a Python file, not {name!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        if product:
            return _product(*map(int, product.groups()))
        return _MAKERS[own](int(batch)) if sized else _MAKERS[name]()


def source(text: str) -> Source:
    """A model, or a job, and its inputs: of a name as :func:`zoo` takes it, or of a Python file."""
    return read(text) if text.endswith(".py") else zoo(text)
