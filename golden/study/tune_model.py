"""What a search tries: its settings, and the file of a user who says which models there are."""

import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import torch

from hbfp.format import HBFPFormat

from ..nn import Formats, convert, fused
from . import zoo


class ModelError(ValueError):
    """A file with a model, or an option about it, is not what is needed; one line."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """All that decides the table of a search.

    Parameters
    ----------
    model : str
        Name in :mod:`golden.study.zoo`, or a Python file like those there.
    trials, epochs : int
        How many trials, of how many epochs each if they are not ended early.
    together : int
        Trials of a round, and so the most that train in one job.
    search : str
        One of :data:`golden.study.tune.SEARCHES`.
    mantissas, blocks, roundings : tuple
        Formats to choose from; width 0 is FP32. One value of each is no choice, and not searched.
    formats : tuple of str
        Names of formats to choose from in place of these, ``fp32`` among them if it is one.
    seed : int
        Of proposals, starts and order of the data.
    """
    model: str = "digits"
    trials: int = 32
    epochs: int = 9
    together: int = 16
    search: str = "hyperband"
    mantissas: tuple[int, ...] = (8,)
    blocks: tuple[int, ...] = (16,)
    roundings: tuple[str, ...] = ("rne",)
    formats: tuple[str, ...] = ()
    seed: int = 0


class Model:
    """What a user's file defines.

    Parameters
    ----------
    name : str
        As of :class:`Search`.

    Raises
    ------
    ModelError
        If the file cannot be read, fails, or lacks a function.
    """

    def __init__(self, name: str) -> None:
        path = Path(zoo.__file__).with_name(f"{name}.py") if name.isidentifier() else Path(name)
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in Path(zoo.__file__).parent.glob("[a-z]*.py")))
            raise ModelError(f"--model {name}: must be {known} or a Python file")
        self.path = path
        found = self.call("", lambda: runpy.run_path(str(path)))
        for needed in ("model", "data"):
            if not callable(found.get(needed)):
                raise ModelError(f"--model {path}: must define a function {needed}")
        self._model, self._optimiser = found["model"], found.get("optimiser", _sgd)
        self.batch = found.get("BATCH", 32)
        if not isinstance(self.batch, int) or isinstance(self.batch, bool) or self.batch < 1:
            raise ModelError(f"--model {path}: BATCH must be a whole number from 1, not {self.batch!r}")
        self.data = self.call("data()", found["data"])
        if len(self.data) != 4 or not all(torch.is_tensor(t) for t in self.data):
            raise ModelError(f"--model {path}: data() must return four tensors: inputs and classes, twice")

    def call(self, what: str, call: Callable[[], Any]) -> Any:
        """Run the user's code; what it raises becomes a :class:`ModelError` that names ``what``."""
        try:
            return call()
        except Exception as error:
            line = next(iter(str(error).splitlines()), "")
            raise ModelError(f"--model {self.path}: {what}{': ' * bool(what)}{type(error).__name__}: {line}") from error

    def net(self, trial: optuna.Trial, seed: int) -> torch.nn.Module:
        """Model of a trial, in FP32, its weights drawn from ``seed``."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            net = self.call("model(trial)", lambda: self._model(trial))
        if not isinstance(net, torch.nn.Module):
            raise ModelError(f"--model {self.path}: model(trial) must return a torch.nn.Module, not "
                             f"{type(net).__name__}")
        return net

    def make(self, trial: optuna.Trial, search: Search) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        """Model and optimiser of a trial, from its own seed."""
        fmt = _format(trial, search)
        seed = search.seed * 1_000_003 + trial.number
        net = self.net(trial, seed)
        fused.seed_dropout(net, seed)
        if fmt is not None:
            net = self.call("convert", lambda: convert(net, fmt, seed=1 + 1000 * seed % 2 ** 31))
        optimiser = self.call("optimiser(trial, parameters)", lambda: self._optimiser(trial, net.parameters()))
        if not isinstance(optimiser, torch.optim.Optimizer):
            raise ModelError(f"--model {self.path}: optimiser(trial, parameters) must return a torch.optim.Optimizer, "
                             f"not {type(optimiser).__name__}")
        return net, optimiser


def _sgd(trial, parameters):
    return torch.optim.SGD(parameters, trial.suggest_float("rate", 1e-3, 1.0, log=True), momentum=0.9)


def _format(trial, search):
    """The format of a trial, None for FP32."""
    def chosen(name, values):
        return values[0] if len(values) == 1 else trial.suggest_categorical(name, list(values))
    if search.formats:
        name = chosen("format", search.formats)
        return None if name == "fp32" else Formats.of(name)
    mantissa = chosen("mantissa", search.mantissas)
    block, rounding = chosen("block", search.blocks), chosen("rounding", search.roundings)
    return HBFPFormat(mantissa=mantissa, block=(1, block), rounding=rounding) if mantissa else None
