"""Trainings of a user's file: its model, or the models of a job, loss, batches and optimiser."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import nn

from hbfp.golden.schedule import MixedMantissa

from ..export import quiet
from ..source import called, functions, job
from .reference import Loss, Plan

NAMES, OTHERS = ("model", "loss", "batches", "optimiser"), ("schedule", "clip", "mantissas", "masks")


@dataclass
class Training:
    """What a file trains.

    Attributes
    ----------
    model : Module or list of Module
        A list is a job.
    loss, optimiser : callable
        In a job the optimiser takes parameters and the model's number.
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
    anew : bool
        Whether masks of sparse weights are made anew behind each step.
    """
    model: Any
    loss: Loss
    optimiser: Any
    text: str
    again: Any
    plan: Plan | None = None
    clip: float | None = None
    mixed: MixedMantissa | None = None
    anew: bool = False

    @property
    def epoch(self) -> int:
        """Batches of an epoch; ValueError if there are none."""
        if count := sum(1 for _ in called(self.text, lambda: iter(self.again()))):
            return count
        raise ValueError(f"batches() of {self.text} must give at least one pair (inputs, targets)")

    def batches(self) -> Iterator[Any]:
        """Its batches, inputs and targets as tuples, and of a job a list with one for each model; from the first again
        when there are no more.

        Raises
        ------
        ValueError
            If one is no pair, or there is none.
        """
        while True:
            number, pairs = 0, called(self.text, lambda: iter(self.again()))
            while (pair := called(self.text, next, pairs, None)) is not None:
                yield self._several(pair, number) if isinstance(self.model, list) else self._pair(pair, number)
                number += 1
            if not number:
                raise ValueError(f"batches() of {self.text} must give at least one pair (inputs, targets)")

    @property
    def shared(self) -> bool:
        """Whether models of a job get one batch for all: the first is a pair, and no list."""
        return isinstance(self.model, list) and not isinstance(next(iter(self.again()), None), list)

    def _pair(self, pair, number):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"Batch {number} of {self.text} must be a pair (inputs, targets)")
        return _leaves(pair[0], number, self.text), _leaves(pair[1], number, self.text)

    def _several(self, batch, number):
        """A batch for each model of a job: a pair is for all of them."""
        if not isinstance(batch, list):
            return [self._pair(batch, number)] * len(self.model)
        if len(batch) != len(self.model):
            raise ValueError(f"Batch {number} of {self.text} must be a pair (inputs, targets) for all models, or a "
                             f"list of a pair for each of the {len(self.model)}, not of {len(batch)}")
        return [self._pair(pair, number) for pair in batch]


    @property
    def modules(self) -> list[str]:
        """Names of the layers, as a step's program has them: of model n of a job with ``n/`` before."""
        job = isinstance(self.model, list)
        return [f"{number}/{name}" if job else name for number, model in enumerate(self.model if job else [self.model])
                for name, _ in model.named_modules()]

    def check(self) -> None:
        """Let PyTorch compute the first loss in float32, before anything else is done with it.

        Raises
        ------
        ValueError
            In PyTorch's own words if it cannot, or if it is no number that parameters can follow.
        """
        first = next(self.batches())
        several = zip(self.model, first, strict=True) if isinstance(self.model, list) else [(self.model, first)]
        for model, batch in several:
            self._check_loss(model, *batch)

    def _check_loss(self, model, inputs, targets):
        with torch.random.fork_rng(), quiet():
            own = called(self.text, copy.deepcopy, model).train()
            loss = called(self.text, lambda: self.loss(own(*inputs), *targets))
        wanted = f"loss() of {self.text} must give a tensor of one number of float32"
        if not isinstance(loss, torch.Tensor):
            raise ValueError(f"{wanted}, not {type(loss).__name__}")
        if loss.dim() or loss.dtype != torch.float32:
            raise ValueError(f"{wanted}, not {tuple(loss.shape)} of {_kind(loss)}; a mean of float32 would do")
        if not loss.requires_grad:
            raise ValueError(f"loss() of {self.text} must depend on parameters that are trained; what it gives depends "
                             "on none")


def _leaves(part, number, text):
    part = tuple(part) if isinstance(part, (tuple, list)) else (part,)
    if not all(isinstance(each, torch.Tensor) for each in part):
        raise ValueError(f"Batch {number} of {text} must have tensors, and tuples of them, alone")
    for each in part:
        if not each.numel():
            raise ValueError(f"Batch {number} of {text} must have numbers, and a tensor of it is {tuple(each.shape)}")
        if not _whole_or_float32(each):
            raise ValueError(f"Batch {number} of {text} must have real numbers of float32, not {_kind(each)}; "
                             ".float() would do")
    return part


def _whole_or_float32(tensor):
    return tensor.dtype == torch.float32 or not (tensor.is_floating_point() or tensor.is_complex())


def _kind(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def training(text: str) -> Training:
    """The training of a file, which defines ``model()``, ``loss(output, *targets)``, ``batches()``, an iterable of
    (inputs, targets), and ``optimiser(parameters)``; and, if it likes, ``schedule(optimiser)``, of
    ``torch.optim.lr_scheduler``, whose ``step()`` is called behind each step, and ``clip()``, the norm that gradients
    are clipped to, and ``mantissas()``, a :class:`~golden.schedule.MixedMantissa`, of which an epoch is all of
    ``batches()``, and ``masks()``, after how many steps those of sparse weights are made anew: 1, or None, never.

    ``model()`` may give a job: a list of modules, or what :func:`golden.nn.fused.fuse` gives. Then ``optimiser`` is
    called with the parameters and the number of each model, and a batch is a pair for all or a list of one for each.

    Raises
    ------
    ValueError
        If it does not; one line.
    """
    made = functions(text, NAMES, OTHERS)
    given = called(text, made["model"])
    given = getattr(given, "hbfp_models", given)
    model = job(list(given), text) if isinstance(given, (list, tuple)) else given
    if not isinstance(model, (nn.Module, list)):
        raise ValueError(f"model() of {text} must give a torch.nn.Module, not {type(model).__name__}")
    if isinstance(model, list):
        try:
            signature(made["optimiser"]).bind(None, 0)
        except TypeError:
            raise ValueError(f"optimiser() of {text} must take parameters and the number of a model, since model() "
                             "gives several") from None
    for each in model if isinstance(model, list) else [model]:
        _check_parameters(each, text)
    plan = partial(_schedule, text, made["schedule"]) if "schedule" in made else None
    clip = called(text, made["clip"]) if "clip" in made else None
    if clip is not None and not (isinstance(clip, (int, float)) and clip > 0):
        raise ValueError(f"clip() of {text} must give a number above 0, not {clip!r}")
    mixed = called(text, made["mantissas"]) if "mantissas" in made else None
    if not isinstance(mixed, MixedMantissa | None):
        raise ValueError(f"mantissas() of {text} must give a golden.schedule.MixedMantissa, not "
                         f"{type(mixed).__name__}")
    masks = called(text, made["masks"]) if "masks" in made else None
    if masks not in (None, 1):
        raise ValueError(f"masks() of {text} must give 1, masks made anew behind each step, or None, not {masks!r}")
    optimiser = partial(_optimiser, text, made["optimiser"])
    return Training(model, made["loss"], optimiser, text, made["batches"], plan, clip, mixed, masks == 1)


def _check_parameters(model, text):
    """ValueError unless a model has parameters to train, all its numbers are float32, and torch can trace it."""
    if hasattr(model, "_orig_mod"):
        raise ValueError(f"model() of {text} must give a module that is not compiled; leave torch.compile out")
    for name, each in (*model.named_parameters(), *model.named_buffers()):
        if not _whole_or_float32(each):
            raise ValueError(f"model() of {text} must have numbers of float32, and {name} has {_kind(each)}; .float() "
                             "would do")
    if not any(each.requires_grad for each in model.parameters()):
        raise ValueError(f"model() of {text} must have a parameter to train; requires_grad_() would do")


def _optimiser(text, make, parameters, *number):
    """What ``optimiser()`` gives; ValueError unless it is an optimiser of parameters that it was given."""
    given = list(parameters)
    made = called(text, make, iter(given), *number)
    if not isinstance(made, torch.optim.Optimizer):
        raise ValueError(f"optimiser() of {text} must give a torch.optim optimiser, not {type(made).__name__}")
    known = {id(each) for each in given}
    if not all(id(each) in known for group in made.param_groups for each in group["params"]):
        raise ValueError(f"optimiser() of {text} must be of the parameters that it is given alone")
    return made


def _schedule(text, make, optimiser):
    """What ``schedule()`` gives; ValueError unless it goes on by steps alone."""
    made = called(text, make, optimiser)
    try:
        signature(made.step).bind()
    except (AttributeError, TypeError):
        raise ValueError(f"schedule() of {text} must give a schedule whose step() takes nothing, not "
                         f"{type(made).__name__}") from None
    return made
