"""Trainings of a user's file: its model, loss, batches and optimiser."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import nn

from hbfp.golden.schedule import MixedMantissa

from ..source import called, functions
from .capture import Batch
from .reference import Loss, Make, Plan

NAMES, OTHERS = ("model", "loss", "batches", "optimiser"), ("schedule", "clip", "mantissas")


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
    plan : callable or None
        Gives the schedule of an optimiser's learning rates.
    clip : float or None
        Gradients are clipped to this norm.
    mixed : MixedMantissa or None
        Mantissas of the layers, epoch by epoch.
    """
    model: nn.Module
    loss: Loss
    optimiser: Make
    text: str
    again: Any
    plan: Plan | None = None
    clip: float | None = None
    mixed: MixedMantissa | None = None

    @property
    def epoch(self) -> int:
        """Batches of an epoch; ValueError if there are none."""
        if count := sum(1 for _ in called(self.text, lambda: iter(self.again()))):
            return count
        raise ValueError(f"batches() of {self.text} must give at least one pair (inputs, targets)")

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
    (inputs, targets), and ``optimiser(parameters)``; and, if it likes, ``schedule(optimiser)``, of
    ``torch.optim.lr_scheduler``, whose ``step()`` is called behind each step, and ``clip()``, the norm that gradients
    are clipped to, and ``mantissas()``, a :class:`~golden.schedule.MixedMantissa`, of which an epoch is all of
    ``batches()``.

    Raises
    ------
    ValueError
        If it does not; one line.
    """
    made = functions(text, NAMES, OTHERS)
    model = called(text, made["model"])
    if not isinstance(model, nn.Module):
        raise ValueError(f"model() of {text} must give a torch.nn.Module, not {type(model).__name__}")
    plan = partial(_schedule, text, made["schedule"]) if "schedule" in made else None
    clip = called(text, made["clip"]) if "clip" in made else None
    if clip is not None and not (isinstance(clip, (int, float)) and clip > 0):
        raise ValueError(f"clip() of {text} must give a number above 0, not {clip!r}")
    mixed = called(text, made["mantissas"]) if "mantissas" in made else None
    if not isinstance(mixed, MixedMantissa | None):
        raise ValueError(f"mantissas() of {text} must give a golden.schedule.MixedMantissa, not "
                         f"{type(mixed).__name__}")
    return Training(model, made["loss"], made["optimiser"], text, made["batches"], plan, clip, mixed)


def _schedule(text, make, optimiser):
    """What ``schedule()`` gives; ValueError unless it goes on by steps alone."""
    made = called(text, make, optimiser)
    try:
        signature(made.step).bind()
    except (AttributeError, TypeError):
        raise ValueError(f"schedule() of {text} must give a schedule whose step() takes nothing, not "
                         f"{type(made).__name__}") from None
    return made
