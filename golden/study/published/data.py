"""Data of the tasks: from a folder that the user has, read by the libraries that know it; nothing is downloaded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hbfp.values import OptionError, shown

from ...vision import torchvision
from .. import tasks
from . import folders
from .samples import Samples, Words
from .task import TaskError, kind_of, options

#: Means and deviations of the colours of CIFAR's training images.
COLOURS = {"CIFAR10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
           "CIFAR100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))}


@dataclass(frozen=True)
class Loader:
    """Reads data of one kind.

    Attributes
    ----------
    load : callable
        From a folder, that of the model or None, and keyword options to data.
    files : callable
        From the same options to names of files below the folder, all of which must be there.
    """
    load: Callable[..., Any]
    files: Callable[..., tuple[str, ...]] = lambda **options: ()


def _digits(folder: Path, models: Path | None) -> Samples:
    x, y, x_test, y_test = tasks.load("digits")
    return Samples((x, y), (x_test, y_test), 10)


def _teacher(folder: Path, models: Path | None) -> Samples:
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
    def load(folder: Path, models: Path | None, *, augment: bool = True) -> Samples:
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


def _words(folder: Path, models: Path | None, *, train: str, test: str, length: int = 35) -> Words:
    texts = [(folder / name).read_text(encoding="utf-8").replace("\n", " <eos> ").split() for name in (train, test)]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(word for text in texts for word in text))}
    read, judged = (torch.tensor([numbers[word] for word in text], dtype=torch.int64) for text in texts)
    for name, words in ((train, read), (test, judged)):
        if len(words) < 4:
            raise TaskError(f"{name} has {len(words)} words, too few")
    return Words(read, judged, len(numbers), length)


def _batches(*names):
    return lambda **options: names


def _both(*, train, test, **others):
    return train, test


#: Kinds of data.
LOADERS: dict[str, Loader] = {
    "digits": Loader(_digits), "teacher": Loader(_teacher),
    "cifar10": Loader(_cifar("CIFAR10"), _batches(*(f"cifar-10-batches-py/{name}" for name in (
        *(f"data_batch_{n}" for n in range(1, 6)), "test_batch", "batches.meta")))),
    "cifar100": Loader(_cifar("CIFAR100"), _batches(*(f"cifar-100-python/{name}" for name in (
        "train", "test", "meta")))),
    "words": Loader(_words, _both), "sentences": Loader(folders.sentences, _both),
    "text": Loader(folders.text, lambda *, test, **others: (test,)),
    "pictures": Loader(folders.pictures, lambda *, test="val", **others: (test,))}


def loader(table: Mapping[str, Any]) -> tuple[Loader, dict[str, Any]]:
    """The loader of the table ``data`` of a task, and its options; an error if a key is not valid."""
    found = kind_of("data", table, LOADERS)
    return found, options(found.load, table, "data.")


def lacking(table: Mapping[str, Any], folder: Path) -> list[str]:
    """Files that a folder lacks, in the order in which the loader names them."""
    found, given = loader(table)
    return [name for name in found.files(**given) if not (folder / name).exists()]


def load(table: Mapping[str, Any], folder: Path, models: Path | None = None) -> Any:
    """The data of the table ``data`` of a task, from a folder; ``models`` is that of the model, if it has one.

    Raises
    ------
    TaskError
        If the files cannot be read; one line.
    """
    found, given = loader(table)
    try:
        return found.load(folder, models, **given)
    except (TaskError, OptionError, ModuleNotFoundError):
        raise
    except Exception as error:    # of many kinds: pickles, texts and images that are none
        line = next(iter(str(error).splitlines()), "")
        raise TaskError(f"data of {folder} cannot be read: {type(error).__name__}: {shown(line, 300)}") from error
