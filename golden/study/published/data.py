"""Data of the tasks: from a folder that the user has, read by the libraries that know it; nothing is downloaded.

Which samples a step has follows from the seed and the number of the step alone.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from ...vision import torchvision
from .. import tasks
from .task import TaskError, kind_of, options

#: Inputs and targets of a batch.
Batch = tuple[tuple[torch.Tensor, ...], torch.Tensor]
#: Means and deviations of the colours of CIFAR's training images.
COLOURS = {"CIFAR10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
           "CIFAR100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))}


@lru_cache(4)
def _order(count, seed, epoch):
    """The order of an epoch's samples."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed * 100_003 + epoch))


class Samples:
    """Samples by themselves, in an order of each epoch's own.

    Parameters
    ----------
    train, test : tuple of (Tensor, Tensor)
        Inputs (N, ...) and int64 classes (N,).
    outputs : int
        Classes.
    ready : callable
        From inputs as they are kept, and a generator in training or None, to what a model takes.
    note : str
        What the data are, in words.
    """

    def __init__(self, train: tuple[torch.Tensor, torch.Tensor], test: tuple[torch.Tensor, torch.Tensor], outputs: int,
                 ready: Callable[..., torch.Tensor] = lambda x, generator: x, note: str = "") -> None:
        self.train, self.test, self.outputs, self.ready = train, test, outputs, ready
        self.note = f"{len(train[0])} samples to train on, {len(test[0])} to judge by{note}"

    def steps(self, batch: int) -> int:
        """Steps of an epoch; samples that fill no batch wait for another epoch."""
        return max(1, len(self.train[0]) // batch)

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """The samples of a step."""
        epoch, place = divmod(step, self.steps(size))
        rows = _order(len(self.train[0]), seed, epoch)[place * size:(place + 1) * size]
        x, y = self.train
        return (self.ready(x[rows], torch.Generator().manual_seed((seed << 32) + step)),), y[rows]

    def tests(self, size: int) -> Iterator[Batch]:
        """All samples to judge by."""
        for x, y in zip(*(part.split(size) for part in self.test), strict=True):
            yield (self.ready(x, None),), y

    def digest(self) -> str:
        """A name that follows from all numbers."""
        return digest(*self.train, *self.test)


class Words:
    """A text in ``size`` rows that are read side by side, ``length`` words a step.

    Parameters
    ----------
    train, test : Tensor of int64
        Words by number.
    outputs : int
        Words that there are.
    length : int
        Words of a row in a step.
    """

    def __init__(self, train: torch.Tensor, test: torch.Tensor, outputs: int, length: int) -> None:
        self.train, self.test, self.outputs, self.length = train, test, outputs, length
        self.note = f"{len(train)} words to train on, {len(test)} to judge by, {outputs} different"

    def steps(self, batch: int) -> int:
        """Steps of an epoch, the last with what is left."""
        return max(1, -(-(len(self.train) // batch - 1) // self.length))

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """The words of a step: (size, length), and those that follow each."""
        return self._piece(self.train, step % self.steps(size), size)

    def tests(self, size: int) -> Iterator[Batch]:
        """The text to judge by, from its start."""
        size = min(size, len(self.test) // 2)
        for place in range(-(-(len(self.test) // size - 1) // self.length)):
            yield self._piece(self.test, place, size)

    def _piece(self, text, place, size):
        rows = text[:len(text) // size * size].view(size, -1)
        start, stop = place * self.length, min((place + 1) * self.length, rows.shape[1] - 1)
        return (rows[:, start:stop],), rows[:, start + 1:stop + 1]

    def digest(self) -> str:
        """A name that follows from all words."""
        return digest(self.train, self.test)


def digest(*tensors: torch.Tensor) -> str:
    """A name that follows from the shapes and numbers of tensors."""
    found = hashlib.sha256()
    for each in tensors:
        found.update(f"{tuple(each.shape)} {each.dtype}".encode())
        found.update(each.contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


@dataclass(frozen=True)
class Loader:
    """Reads data of one kind.

    Attributes
    ----------
    load : callable
        From a folder and keyword options to data.
    files : callable
        From the same options to names of files below the folder, all of which must be there.
    """
    load: Callable[..., Any]
    files: Callable[..., tuple[str, ...]] = lambda **options: ()


def _digits(folder: Path) -> Samples:
    x, y, x_test, y_test = tasks.load("digits")
    return Samples((x, y), (x_test, y_test), 10)


def _teacher(folder: Path) -> Samples:
    x, y, x_test, y_test = tasks.load("teacher")
    return Samples((x, y), (x_test, y_test), 10)


def cropped(x: torch.Tensor, generator: torch.Generator, border: int = 4) -> torch.Tensor:
    """Images (N, C, H, W), each moved by up to ``border`` pixels and mirrored or not, zeros where it has none."""
    n, channels, height, width = x.shape
    padded = torch.nn.functional.pad(x, (border,) * 4)
    down, right = torch.randint(2 * border + 1, (2, n, 1), generator=generator)
    mirrored = torch.randint(2, (n, 1), generator=generator).bool()
    columns = torch.arange(width)
    columns = right + torch.where(mirrored, width - 1 - columns, columns)
    rows = down + torch.arange(height)
    return padded[torch.arange(n)[:, None, None, None], torch.arange(channels)[:, None, None], rows[:, None, :, None],
                  columns[:, None, None, :]]


def _cifar(name):
    """The loader of CIFAR-10 or CIFAR-100: torchvision reads the pickled batches, whoever made them."""
    def load(folder: Path, *, augment: bool = True) -> Samples:
        vision = torchvision().datasets
        kind, check_integrity = getattr(vision, name), vision.utils.check_integrity
        listed = [*kind.train_list, *kind.test_list]
        known = all(check_integrity(str(folder / kind.base_folder / file), md5) for file, md5 in listed)
        unchecked = type(name, (kind,), {
            "train_list": [[file, None] for file, _ in kind.train_list],
            "test_list": [[file, None] for file, _ in kind.test_list], "meta": kind.meta | {"md5": None}})
        parts = [unchecked(folder, train=train, download=False) for train in (True, False)]
        mean, deviation = (torch.tensor(each)[:, None, None] for each in COLOURS[name])

        def ready(x, generator):
            x = (x.float() / 255 - mean) / deviation
            return cropped(x, generator) if augment and generator else x
        read, judged = ((torch.from_numpy(part.data).permute(0, 3, 1, 2).contiguous(), torch.tensor(part.targets))
                        for part in parts)
        return Samples(read, judged, len(parts[0].classes), ready, "" if known else ", not those that are published")
    return load


def _words(folder: Path, *, train: str, test: str, length: int = 35) -> Words:
    texts = [(folder / name).read_text(encoding="utf-8").replace("\n", " <eos> ").split() for name in (train, test)]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(word for text in texts for word in text))}
    read, judged = (torch.tensor([numbers[word] for word in text], dtype=torch.int64) for text in texts)
    for name, words in ((train, read), (test, judged)):
        if len(words) < 4:
            raise TaskError(f"{name} has {len(words)} words, too few")
    return Words(read, judged, len(numbers), length)


def _batches(*names):
    return lambda **options: names


#: Kinds of data.
LOADERS: dict[str, Loader] = {
    "digits": Loader(_digits), "teacher": Loader(_teacher),
    "cifar10": Loader(_cifar("CIFAR10"), _batches(*(f"cifar-10-batches-py/{name}" for name in (
        *(f"data_batch_{n}" for n in range(1, 6)), "test_batch", "batches.meta")))),
    "cifar100": Loader(_cifar("CIFAR100"), _batches(*(f"cifar-100-python/{name}" for name in (
        "train", "test", "meta")))),
    "words": Loader(_words, lambda *, train, test, **others: (train, test))}


def loader(table: Mapping[str, Any]) -> tuple[Loader, dict[str, Any]]:
    """The loader of the table ``data`` of a task, and its options; an error if a key is not valid."""
    found = kind_of("data", table, LOADERS)
    return found, options(found.load, table, "data.")


def lacking(table: Mapping[str, Any], folder: Path) -> list[str]:
    """Files that a folder lacks, in the order in which the loader names them."""
    found, given = loader(table)
    return [name for name in found.files(**given) if not (folder / name).exists()]


def load(table: Mapping[str, Any], folder: Path) -> Any:
    """The data of the table ``data`` of a task."""
    found, given = loader(table)
    return found.load(folder, **given)
