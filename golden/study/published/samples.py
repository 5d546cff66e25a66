"""Data as steps take them: which samples a step has follows from the seed and the number of the step alone."""

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache

import torch

#: Inputs and targets of a batch.
Batch = tuple[tuple[torch.Tensor, ...], torch.Tensor]


@lru_cache(4)
def order(count: int, seed: int, epoch: int) -> torch.Tensor:
    """The order of an epoch's samples, or of its batches."""
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
        trained = f"{len(train[0])} samples to train on, {len(test[0])}" if len(train[0]) else f"{len(test[0])} samples"
        self.note = f"{trained} to judge by{note}"

    def steps(self, batch: int) -> int:
        """Steps of an epoch; samples that fill no batch wait for another epoch."""
        return max(1, len(self.train[0]) // batch)

    def batch(self, seed: int, step: int, size: int) -> Batch:
        """The samples of a step."""
        epoch, place = divmod(step, self.steps(size))
        rows = order(len(self.train[0]), seed, epoch)[place * size:(place + 1) * size]
        x, y = self.train
        return (self.ready(x[rows], torch.Generator().manual_seed((seed << 32) + step)),), y[rows]

    def tests(self, size: int) -> Iterator[Batch]:
        """All samples to judge by."""
        for x, y in zip(*(part.split(size) for part in self.test), strict=True):
            yield (self.ready(x, None),), y

    def judged(self, size: int) -> int:
        """Batches to judge by."""
        return -(-len(self.test[0]) // size)

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
        for place in range(self.judged(size)):
            yield self._piece(self.test, place, size)

    def judged(self, size: int) -> int:
        """Batches to judge by."""
        return -(-(len(self.test) // min(size, len(self.test) // 2) - 1) // self.length)

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
