"""One step of every model's optimiser."""

from collections.abc import Iterable

import torch

from .compiled_updates import Compiled
from .job import Job
from .updates import UPDATES


class Step:
    """One step of every model's optimiser, in fewer and larger operations; the same bits.

    Serves any optimisers. SGD, Adam, AdamW and Adadelta of ``torch.optim`` run on all models at once; learning rates,
    which schedulers may change at any time, and all other coefficients stay each model's own. Every other optimiser,
    and one with several groups of parameters or with hooks, makes its own step.

    Parameters
    ----------
    job : Job
        The job.
    optimisers : sequence of torch.optim.Optimizer
        One per model, in the models' order.

    Attributes
    ----------
    joint : bool
        Whether the optimisers run on all models at once.
    """

    def __init__(self, job: Job, optimisers: Iterable[torch.optim.Optimizer]) -> None:
        self.optimisers = list(optimisers)
        if len(self.optimisers) != job.count:
            raise ValueError(f"Optimisers must be {job.count}, one per model, not {len(self.optimisers)}")
        self.held = job.held
        self.trained = job.held.trained
        self.states: list[dict[int, object]] = []
        self.joint = self._fits()

    def _fits(self):
        """Whether one update serves all models: one kind of optimiser, over exactly the parameters held."""
        kind = type(self.optimisers[0])
        if kind not in UPDATES or any(type(optimiser) is not kind for optimiser in self.optimisers):
            return False
        if any(len(optimiser.param_groups) != 1 for optimiser in self.optimisers):
            return False
        groups = [optimiser.param_groups[0] for optimiser in self.optimisers]
        # Choices that change the operations; learning rates as tensors are read by torch's own.
        equal = ("nesterov", "amsgrad", "maximize", "differentiable", "capturable", "foreach", "fused")
        return bool(self.trained[0]) and all(
            {id(p) for p in group["params"]} == {id(p) for p in own}
            and all(group.get(key) == groups[0].get(key) for key in equal)
            and not any(group.get(key) for key in equal[1:])
            and bool(group.get("momentum")) == bool(groups[0].get("momentum"))
            and not isinstance(group["lr"], torch.Tensor)
            for optimiser, group, own in zip(self.optimisers, groups, self.trained, strict=True))

    def _take_over(self):
        """Move the optimisers' states into rows; False if some have one and others not."""
        self.update, names, counted = UPDATES[type(self.optimisers[0])]
        if "momentum" in self.optimisers[0].param_groups[0] and not self.optimisers[0].param_groups[0]["momentum"]:
            names = ()
        old = [[optimiser.state.get(p) or {} for p in own]
               for optimiser, own in zip(self.optimisers, self.trained, strict=True)]
        present = {all(state.get(name) is not None for name in names) for own in old for state in own}
        if len(present) > 1:
            return False
        self.state = {name: torch.zeros_like(self.held.values) for name in names}
        self.fresh = not names or present == {False}
        self.counts = torch.zeros(len(old), len(old[0])) if counted else None
        views = {name: self.held.rows(rows) for name, rows in self.state.items()}
        for i, (optimiser, own) in enumerate(zip(self.optimisers, self.trained, strict=True)):
            for j, p in enumerate(own):
                for name, rows in views.items():
                    if not self.fresh:
                        rows[i][j].copy_(old[i][j][name])
                    optimiser.state[p][name] = rows[i][j]
                if self.counts is not None:
                    self.counts[i, j] = float(old[i][j].get("step", 0))
                    optimiser.state[p]["step"] = self.counts[i, j]
        kind = type(self.optimisers[0])
        self.compiled = Compiled(kind, self.held.columns) if Compiled.serves(kind) else None
        if self.compiled is None:
            self.grads = torch.zeros_like(self.held.values)
            self.places = [self.grads[:, columns] for columns in self.held.columns]
        self.states = [optimiser.state for optimiser in self.optimisers]
        return True

    @torch.no_grad()
    def __call__(self) -> None:
        """Update every model's parameters from their gradients."""
        step = self._ready()
        grads = self._gather() if step else None
        if grads is None:
            for optimiser in self.optimisers:
                optimiser.step()
            return
        if self.counts is not None:
            self.counts += 1
        groups = [one.param_groups[0] for one in self.optimisers]
        if self.compiled is not None:
            self.compiled(self.held.values, grads, self.state, groups, step)
        else:
            torch._foreach_copy_(self.places, grads)
            self.update(self.held.values, self.grads, self.state, groups, step)
        self.fresh = False
        for optimiser in self.optimisers:
            optimiser._opt_called = True               # what schedulers ask for

    def _ready(self):
        """The number of the coming step from 1, 0 if the optimisers cannot make it together."""
        if not self.joint or any(one._optimizer_step_pre_hooks or one._optimizer_step_post_hooks
                                 or len(one.param_groups) > 1 for one in self.optimisers):
            return 0
        # Loading a state gives an optimiser another dictionary.
        if not self.states or any(one.state is not state
                                  for one, state in zip(self.optimisers, self.states, strict=True)):
            if not self._take_over():
                return 0
        if self.counts is None:
            return 1 if self.fresh else 2
        low, high = self.counts.aminmax()
        return int(low) + 1 if low == high else 0

    def _gather(self):
        """The gradients of each parameter, (models, n); None if one is missing."""
        rows = []
        for spread in self.held.spreads:
            whole = spread.whole()
            if whole is None:
                parts = [p.grad for p in spread.peers]
                if any(part is None or part.is_sparse for part in parts):
                    return None
                whole = torch.stack(parts)
            rows.append(whole.contiguous().view(len(whole), -1))
        return rows

    def zero_grad(self) -> None:
        """Drop every model's gradients, as the optimisers' own ``zero_grad`` does."""
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                for p in group["params"]:
                    p.grad = None
        for spread in self.held.spreads:
            spread.drop()
