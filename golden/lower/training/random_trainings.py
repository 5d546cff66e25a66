"""Random small trainings: networks, losses, optimisers and batches that follow from a number, lowered for a machine.

What an accelerator is too small for, or does not do by a known limit, is drawn anew, and told.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from hbfp.golden.schedule import MixedMantissa
from hbfp.system import Accelerator

from ..errors import LoweringError
from ..fitting import DRAWS, Drawn
from .job import Job, lower_job_step
from .mixed import MixedStep, lower_mixed
from .random_models import WORDS, Models
from .reference import Loss, Make, Plan
from .step import Step, lower_step

SAMPLES = (1, 2, 3, 4, 5, 8, 9, 12)
#: Loss of the output alone -> targets that it takes.
LOSSES = {"cross_entropy": "classes", "mse_loss": "numbers", "l1_loss": "numbers", "smooth_l1_loss": "numbers",
          "huber_loss": "numbers", "binary_cross_entropy_with_logits": "shares"}


@dataclass
class DrawnTraining(Drawn):
    """What a number stands for.

    Attributes
    ----------
    step : Step, Job, MixedStep or None
        The training, or None if every draw met a limit.
    batches : list
        As the step takes them.
    """
    step: Step | Job | MixedStep | None = None
    batches: list[Any] = field(default_factory=list)

    @property
    def fits(self) -> bool:
        return self.step is not None


def random_training(accelerator: Accelerator, seed: int, steps: int = 2) -> DrawnTraining:
    """The training of a number on an accelerator, the same whenever it is drawn, with batches for so many steps."""
    drawn = DrawnTraining()

    def make(number: int) -> None:
        recipe = _Recipe(accelerator, Random(f"training {seed} {number}"), steps)
        drawn.text = recipe.text
        drawn.step, drawn.batches = recipe.lowered(), recipe.batches
    drawn.until_it_fits(make, LoweringError, DRAWS)
    return drawn


class _Recipe:
    """A training before it is lowered; all is drawn when it is made."""

    def __init__(self, accelerator: Accelerator, pick: Random, steps: int) -> None:
        self.accelerator, self.pick = accelerator, pick
        core = accelerator.core
        samples, self.seed = pick.choice(SAMPLES), pick.getrandbits(32)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            several = 2 if pick.random() < 0.15 else 1
            kind, shape = self._samples()
            made = [Models(pick, samples, accelerator.stochastic).model(kind, shape) for _ in range(several)]
            self.models = [self._some_fixed(model.train()) for model, _ in made]
            self.loss_text, self.loss, targets = self._loss()
            self.batches: list[Any] = []
            for _ in range(steps):
                pairs = [((self._inputs(kind, (samples, *shape)),), (targets(samples, *result),)) for _, result in made]
                self.batches.append(pairs if several > 1 else pairs[0])
        optimisers = [self._optimiser() for _ in made]
        self.optimisers = [make for _, make in optimisers]
        self.plan_text, self.plan = self._plan()
        self.clip = pick.choice((None, None, 0.1, 10.0))
        likely = 0.6 * accelerator.stochastic
        rarely = likely * (0.1 if kind == "images" else 1)     # convolutions have g alone
        self.stochastic = tuple(role for role in "xwg" if pick.random() < (likely if role == "g" else rarely))
        self.mixed = None
        if core.wide and several == 1 and pick.random() < 0.8:
            self.mixed = MixedMantissa(base=core.format.mantissa, boosted=core.wide, epochs=steps,
                                       last_epochs=pick.randint(0, 1), ends=pick.random() < 0.5)
        models = " and ".join(" ".join(repr(model).split()) for model in self.models)
        names = " and ".join(text for text, _ in optimisers)
        mixed = "" if self.mixed is None else f", wide ends {self.mixed.ends}, wide epochs {self.mixed.last_epochs}"
        self.text = (f"{models} of {samples} {kind} {shape}, {self.loss_text}, {names}, {self.plan_text}, clip "
                     f"{self.clip}, stochastic {','.join(self.stochastic) or 'none'}{mixed}")

    def lowered(self) -> Step | Job | MixedStep:
        """The training as a program, or as several."""
        options: dict[str, Any] = {"stochastic": self.stochastic, "seed": self.seed, "clip": self.clip}
        if len(self.models) > 1:
            plans = None if self.plan is None else [self.plan] * len(self.models)
            return lower_job_step(self.models, self.loss, self.optimisers, self.batches[0], self.accelerator,
                                  plans=plans, **options)
        given: tuple[Any, Any, Any, Any, Any] = (self.models[0], self.loss, self.optimisers[0], self.batches[0],
                                                 self.accelerator)
        if self.mixed is not None:
            return lower_mixed(*given, self.mixed, 1, plan=self.plan, **options)
        return lower_step(*given, plan=self.plan, **options)

    def _samples(self) -> tuple[str, tuple[int, ...]]:
        """The kind and the shape of a sample."""
        pick = self.pick
        times = pick.randint(1, 6)
        return pick.choice((("rows", (pick.randint(1, 24),)), ("sequences", (times, pick.randint(1, 16))),
                            ("words", (times,)), ("images", (pick.randint(1, 6), pick.randint(2, 6),
                                                             pick.randint(2, 6)))))

    def _inputs(self, kind: str, shape: tuple[int, ...]) -> torch.Tensor:
        """Inputs of a batch; some with zeros, or so large or small that formats clip and flush them."""
        if kind == "words":
            return torch.randint(WORDS, shape)
        values = torch.randn(shape)
        if self.pick.random() < 0.2:
            values = torch.where(torch.rand(shape) < 0.5, 0.0, values)
        if self.pick.random() < 0.15:
            values = torch.ldexp(values, torch.randint(-40, 10, shape))
        return values

    def _some_fixed(self, model: nn.Module) -> nn.Module:
        """A model of which, now and then, one parameter is not trained."""
        parameters = list(model.parameters())
        if len(parameters) > 1 and self.pick.random() < 0.1:
            self.pick.choice(parameters).requires_grad_(False)
        return model

    # --- What is made of the models -----------------------------------------------------------

    def _loss(self) -> tuple[str, Loss, Callable[..., torch.Tensor]]:
        """A text, a loss, and what makes targets of the shape of an output."""
        pick, name = self.pick, self.pick.choice(("cross_entropy", *LOSSES))
        options: dict[str, Any] = {"reduction": pick.choice(("mean", "mean", "sum"))}
        if name == "cross_entropy":
            options["label_smoothing"] = pick.choice((0.0, 0.0, 0.1))
        text = f"{name} {options}"
        return text, partial(_loss, getattr(F, name), options), partial(_targets, LOSSES[name])

    def _optimiser(self) -> tuple[str, Make]:
        pick = self.pick
        rate = pick.choice((0.3, 0.1, 0.01, 0.003))
        options: dict[str, Any] = {"lr": rate, "weight_decay": pick.choice((0, 0, 1e-2))}
        kind = pick.choice((torch.optim.SGD, torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW))
        if kind is torch.optim.SGD:
            options["momentum"] = pick.choice((0, 0.9, 0.5))
            options["nesterov"] = bool(options["momentum"]) and pick.random() < 0.5
        else:
            options["betas"] = pick.choice(((0.9, 0.999), (0.5, 0.9)))
        groups = pick.choice((1, 1, 2))
        return f"{kind.__name__} {options} in {groups} groups", partial(_optimiser, kind, options, groups)

    def _plan(self) -> tuple[str, Plan | None]:
        if self.pick.random() < 0.6:
            return "no schedule", None
        return "rates halved", partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.5)


def _loss(function, options, output, target):
    """A loss of outputs (N, R), or (N, T, R)."""
    if not target.is_floating_point():
        output = output.flatten(0, -2)
    return function(output, target, **options)


def _targets(kind, samples, *shape):
    """Targets of a batch, for results of this shape."""
    if kind == "classes":
        return torch.randint(shape[-1], (samples * int(torch.tensor(shape[:-1]).prod()),))
    return torch.rand(samples, *shape) if kind == "shares" else torch.randn(samples, *shape)


def _optimiser(kind, options, groups, parameters):
    """An optimiser of parameters that are dealt to groups, each of a rate of its own."""
    given = [each for each in parameters if each.requires_grad]
    dealt = [given[number::groups] for number in range(groups)]
    return kind([{"params": each, "lr": options["lr"] / (1 + number)} for number, each in enumerate(dealt) if each],
                **options)
