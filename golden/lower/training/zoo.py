"""Trainings by name: a batch of random numbers for networks of the zoo, for the cycle model."""

import re
from collections.abc import Callable, Iterator

import torch
from torch import nn

from hbfp.golden.study.resnet import ResNet50

from ..bert import CONFIGS, Bert, Config
from .capture import Batch
from .source import Training
from .source import training as of_file

#: NAME, or NAME:BATCH.
_NAME = re.compile(r"([a-z0-9-]+?)(?::([1-9]\d{0,3}))?")
#: Pixels and classes of images; tokens of a sentence.
SIDE, CLASSES, TOKENS = 224, 1000, 128


def _images(batch):
    return (torch.randn(batch, 3, SIDE, SIDE),), (torch.randint(CLASSES, (batch,)),)


def _sentences(batch):
    shape = batch, TOKENS, CONFIGS["bert-base"].width
    return (torch.randn(shape),), (torch.randn(shape),)


#: Name -> its usual batch, model, batch of a size, loss.
TRAININGS: dict[str, tuple[int, Callable[[], nn.Module], Callable[[int], Batch], Callable[..., torch.Tensor]]] = {
    "resnet50": (32, ResNet50, _images, nn.functional.cross_entropy),
    "bert-base": (8, lambda: Bert(CONFIGS["bert-base"]), _sentences, nn.functional.mse_loss),
    "bert-layer": (8, lambda: Bert(Config(1, 768, 12)), _sentences, nn.functional.mse_loss)}


def training(text: str) -> Training:
    """The training of a file, or of a name of :data:`TRAININGS`, perhaps with the size of its batch, as ``resnet50:4``.

    Named networks have random weights, a random batch, and SGD with momentum.

    Raises
    ------
    ValueError
        If there is none, or PyTorch cannot compute its first loss; one line.
    """
    if text.endswith(".py"):
        made = of_file(text)
        made.check()
        return made
    found = _NAME.fullmatch(text)
    if not found or found[1] not in TRAININGS:
        raise ValueError(f"Training must be a Python file, or one of {', '.join(TRAININGS)}, perhaps with the size of "
                         f"its batch behind a colon, not {text!r}")
    usual, model, batch, loss = TRAININGS[found[1]]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        made, pair = model(), batch(int(found[2] or usual))

    def again() -> Iterator[Batch]:
        yield pair
    return Training(made, loss, lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9), text, again)
