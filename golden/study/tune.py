"""Search for hyper-parameters and formats: Optuna proposes and prunes, what can be fused trains as one job.

Trials go in rounds. After every epoch the models, optimisers and scores of a round are written to one file, then Optuna
is told; so a search that is killed at any moment and started again ends with the same table.
"""

import os
import runpy
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import torch
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from hbfp import files
from hbfp.format import HBFPFormat

from ..nn import convert, fused
from . import zoo

#: Name -> what ends bad trials early, from the number of epochs.
SEARCHES: dict[str, Callable[[int], optuna.pruners.BasePruner]] = {
    "random": lambda epochs: optuna.pruners.NopPruner(),
    "halving": lambda epochs: optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
    "hyperband": lambda epochs: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=epochs, reduction_factor=3)}


class ModelError(ValueError):
    """A file with a model is not what a search needs; one line."""


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
        Trials of a round, at most those of one job.
    search : str
        One of :data:`SEARCHES`.
    mantissas, blocks, roundings : tuple
        Formats to choose from; width 0 is FP32. One value of each is no choice, and not searched.
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
    mantissa = chosen("mantissa", search.mantissas)
    block, rounding = chosen("block", search.blocks), chosen("rounding", search.roundings)
    return HBFPFormat(mantissa=mantissa, block=(1, block), rounding=rounding) if mantissa else None


class Group:
    """Trials of one architecture that train together: a job, or one by one where that cannot be.

    Parameters
    ----------
    members : dict of int to tuple
        Trial number -> model and optimiser.

    Attributes
    ----------
    why : str
        Why they train one by one; empty for a job.
    """

    def __init__(self, members: dict[int, tuple[torch.nn.Module, torch.optim.Optimizer]]) -> None:
        self.members, self.why, self.job = members, "", None
        nets, optimisers = zip(*members.values(), strict=True)
        if len(nets) > 1:
            try:
                self.job = fused.fuse(nets)
                self.step = fused.Step(self.job, optimisers)
            except ValueError as error:
                self.why = str(error)

    def train(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """One step of every trial on one batch."""
        if self.job is not None:
            self.step.zero_grad()
            fused.cross_entropy(self.job(x, shared=True), y.repeat(self.job.count), self.job.count).backward()
            self.step()
            return
        for net, optimiser in self.members.values():
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimiser.step()

    def text(self) -> str:
        """Who trains how, in one line."""
        numbers = ", ".join(map(str, self.members))
        if len(self.members) == 1:
            return f"trial {numbers}: alone"
        return f"trials {numbers}: " + ("one job" if self.job is not None else f"one by one; {self.why}")

    def mode(self, training: bool) -> None:
        """Training or evaluation mode of every model."""
        for net, _ in self.members.values():
            net.train(training)
        if self.job is not None:
            self.job.train(training)


def most_together(net: torch.nn.Module, x: torch.Tensor, memory: int) -> int:
    """Models of one kind that fit ``memory`` bytes while they train on ``x``, 1 at least.

    Counted are parameters, gradients and two numbers of optimiser state for each, and all that a forward pass keeps for
    the backward pass, three times: the tensors themselves, their gradients, and what an operation needs in passing.
    """
    kept = 0

    def count(tensor):
        nonlocal kept
        kept += tensor.numel() * tensor.element_size()
        return tensor
    state = [buffer.clone() for buffer in net.buffers()]
    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        y = net(x)
    kept += y.numel() * y.element_size()
    for buffer, old in zip(net.buffers(), state, strict=True):
        buffer.copy_(old)                              # statistics and noise as before
    own = sum(p.numel() * p.element_size() for p in net.parameters())
    return max(1, memory // (4 * own + 3 * kept))


def _groups(members: dict[int, Any], model: Model, memory: int) -> list[Group]:
    """Trials cut into jobs: by architecture, then by memory."""
    x = model.data[0][:model.batch]
    kinds: dict[str, list[int]] = {}
    for number, (net, _) in members.items():
        kinds.setdefault(fused.signature(net), []).append(number)
    groups = []
    for numbers in kinds.values():
        most = model.call("forward", partial(most_together, members[numbers[0]][0], x, memory))
        for first in range(0, len(numbers), most):
            groups.append(Group({number: members[number] for number in numbers[first:first + most]}))
    return groups


def tune(search: Search, folder: Path, *, memory: int | None = None,
         report: Callable[[str], object] = lambda line: None) -> list[dict[str, Any]]:
    """Run a search, or go on with one.

    Parameters
    ----------
    search : Search
        What to search.
    folder : Path
        Holds ``study.journal`` (Optuna's storage), ``round.pt`` (the round that is under way) and ``search.json``.
    memory : int, optional
        Bytes for a job; half of the machine's by default. No result depends on it.
    report : callable
        Called with lines that tell what happens.

    Returns
    -------
    list of dict
        Of each trial ``number``, ``value`` (accuracy in percent after its last epoch), ``state``, ``epochs`` and
        ``params``; those that were not ended early first, the best of each first.

    Raises
    ------
    ModelError
        If the model's file is not what is needed, or the folder holds another search.
    """
    memory = memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    model = Model(search.model)
    settings = asdict(search) | {"source": files.key(model.path.read_bytes())}
    settings = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    folder.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with files.lock(folder / "study.journal"):
        study = optuna.create_study(study_name="tune", direction="maximize", load_if_exists=True,
                                    storage=JournalStorage(JournalFileBackend(str(folder / "study.journal"))),
                                    sampler=_Proposals(search.seed), pruner=SEARCHES[search.search](search.epochs))
        before = study.user_attrs.get("settings")
        if before is None:
            study.set_user_attr("settings", settings)
        elif before != settings:
            odd = next(key for key in settings if before.get(key) != settings[key])
            raise ModelError(f"--out {folder}: holds a search with another {odd}; choose another folder or remove it")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)                       # FP32 products depend on the number
        try:
            for first in range(0, search.trials, search.together):
                _round(study, model, search, range(first, min(first + search.together, search.trials)), folder, memory,
                       report)
        finally:
            torch.set_num_threads(threads)
        table = sorted((_row(trial) for trial in study.get_trials(deepcopy=False)),
                       key=lambda row: (row["state"] != "complete", -row["value"], row["number"]))
        (folder / "round.pt").unlink(missing_ok=True)
        files.write_json(folder / "search.json", {"search": settings, "trials": table})
        return table


def _row(trial):
    values = trial.intermediate_values
    return {"number": trial.number, "value": values[max(values)], "state": trial.state.name.lower(),
            "epochs": max(values), "params": trial.params}


class _Proposals(optuna.samplers.RandomSampler):
    """Random search whose every draw depends on seed, trial and name alone, not on when a search was stopped."""

    def __init__(self, seed):
        super().__init__(seed)
        self._own = seed

    def sample_independent(self, study, trial, name, distribution):
        seed = zlib.crc32(f"{self._own} {trial.number} {name}".encode())
        return optuna.samplers.RandomSampler(seed).sample_independent(study, trial, name, distribution)


def _asked(study: optuna.Study, numbers: Iterable[int]) -> dict[int, optuna.Trial]:
    """The trials of a round that still run; those that were never asked for are asked for now."""
    known = {trial.number: trial for trial in study.get_trials(deepcopy=False)}
    running = {}
    for number in numbers:
        if number not in known:
            running[number] = study.ask()
        elif known[number].state == optuna.trial.TrialState.RUNNING:
            running[number] = optuna.trial.Trial(study, known[number]._trial_id)
    return running


def _round(study, model, search, numbers, folder, memory, report):
    """Train the trials of one round to their ends."""
    path = folder / "round.pt"
    running = _asked(study, numbers)
    if not running:                                    # done before; the file is of another round
        return
    made = {number: model.make(trial, search) for number, trial in running.items()}
    state = torch.load(path, weights_only=False) if path.exists() else {}
    if state.get("first") != numbers[0]:
        state = {"epoch": 0, "values": {}, "parts": {}}
    epoch = state["epoch"]
    for number in made.keys() & state["parts"].keys():
        for part, old in zip(made[number], state["parts"][number], strict=True):
            part.load_state_dict(old)
    if epoch:                                          # perhaps killed before Optuna was told
        _tell(study, running, state["values"], epoch, search.epochs)
    groups = _groups(_left(made, running), model, memory)
    for group in groups:
        report(group.text())
    while running:
        _epoch(groups, model, search.seed * 100_003 + epoch)
        epoch += 1
        values = {number: _score(net, *model.data[2:]) for number, (net, _) in _left(made, running).items()}
        parts = {number: [_copied(part.state_dict()) for part in made[number]] for number in running}
        with files.replacing(path) as temporary:
            torch.save({"first": numbers[0], "epoch": epoch, "values": values, "parts": parts}, temporary)
        if _tell(study, running, values, epoch, search.epochs):
            groups = _groups(_left(made, running), model, memory)


def _left(made, running):
    """Models and optimisers of the trials that still run."""
    return {number: made[number] for number in running}


def _epoch(groups: Sequence[Group], model: Model, seed: int) -> None:
    """One epoch of every group, over the same batches."""
    x, y, *_ = model.data
    for group in groups:
        group.mode(True)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed % 2 ** 63))
    for group in groups:
        for rows in order.split(model.batch):
            group.train(x[rows], y[rows])
    for group in groups:
        group.mode(False)


def _score(net, x, y):
    """Accuracy in percent."""
    with torch.no_grad():
        return (net(x).argmax(1) == y).double().mean().item() * 100


def _copied(value):
    """States whose tensors hold their own numbers alone, not a view of a job's."""
    if torch.is_tensor(value):
        return value.clone()
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, (list, tuple)) else value


def _tell(study, running, values, epoch, epochs):
    """Report an epoch's scores to Optuna and drop the trials that end; whether any did."""
    ended = []
    for number, trial in running.items():
        if epoch not in study.get_trials(deepcopy=False)[number].intermediate_values:
            trial.report(values[number], epoch)
    for number, trial in running.items():
        if epoch >= epochs:
            study.tell(number, values[number])
        elif trial.should_prune():
            study.tell(number, state=optuna.trial.TrialState.PRUNED)
        else:
            continue
        ended.append(number)
    for number in ended:
        del running[number]
    return bool(ended)
