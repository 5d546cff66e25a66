"""Trainings of a user's file: its model, loss, batches and optimiser."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..source import called, functions
from .capture import Batch
from .reference import Loss, Make

NAMES = ("model", "loss", "batches", "optimiser")


@dataclass
class Training:
    """What a file trains.

    Attributes
    ----------
    model : Module
    loss, optimiser : callable
    text : str
        The file.
    again : callable
        Gives its batches from the first on.
    """
    model: nn.Module
    loss: Loss
    optimiser: Make
    text: str
    again: Any

    def batches(self) -> Iterator[Batch]:
        """Its batches, inputs and targets as tuples; from the first again when there are no more.

        Raises
        ------
        ValueError
            If one is no pair, or there is none.
        """
        while True:
            number, pairs = 0, called(self.text, lambda: iter(self.again()))
            while (pair := called(self.text, next, pairs, None)) is not None:
                if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                    raise ValueError(f"Batch {number} of {self.text} must be a pair (inputs, targets)")
                yield _leaves(pair[0], number, self.text), _leaves(pair[1], number, self.text)
                number += 1
            if not number:
                raise ValueError(f"batches() of {self.text} must give at least one pair (inputs, targets)")


def _leaves(part, number, text):
    part = tuple(part) if isinstance(part, (tuple, list)) else (part,)
    if not all(isinstance(each, torch.Tensor) for each in part):
        raise ValueError(f"Batch {number} of {text} must have tensors, and tuples of them, alone")
    return part


def training(text: str) -> Training:
    """The training of a file, which defines ``model()``, ``loss(output, *targets)``, ``batches()``, an iterable of
    (inputs, targets), and ``optimiser(parameters)``.

    Raises
    ------
    ValueError
        If it does not; one line.
    """
    made = functions(text, NAMES)
    model = called(text, made["model"])
    if not isinstance(model, nn.Module):
        raise ValueError(f"model() of {text} must give a torch.nn.Module, not {type(model).__name__}")
    return Training(model, made["loss"], made["optimiser"], text, made["batches"])
