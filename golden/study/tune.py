"""Search for hyper-parameters and formats: Optuna proposes and prunes, and trials that can be fused train as one job.

Trials go in rounds. After every epoch the models, optimisers and scores of a round are written to one file, then Optuna
is told; so a search that is killed at any moment and started again ends with the same table.
"""

import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import optuna
import torch
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from hbfp import files

from .tune_jobs import Group, groups_of
from .tune_model import Model, ModelError, Search

#: Name -> what ends bad trials early, from the number of epochs.
SEARCHES: dict[str, Callable[[int], optuna.pruners.BasePruner]] = {
    "random": lambda epochs: optuna.pruners.NopPruner(),
    "halving": lambda epochs: optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
    "hyperband": lambda epochs: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=epochs, reduction_factor=3)}


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
        Of each trial ``number``, ``value`` (accuracy in percent after its last epoch), ``state``, ``epochs``,
        ``params`` and ``curve`` (the accuracy after each epoch); the best first, whether it was ended early or not.

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
        table = ranked(study.get_trials(deepcopy=False))
        (folder / "round.pt").unlink(missing_ok=True)
        files.write_json(folder / "search.json", {"search": settings, "trials": table})
        return table


def ranked(trials: Iterable[optuna.trial.FrozenTrial]) -> list[dict[str, Any]]:
    """Trials as rows, the most accurate first, whether it was ended early or not."""
    return sorted(map(_row, trials), key=lambda row: (-row["value"], row["number"]))


def _row(trial):
    values = trial.intermediate_values
    return {"number": trial.number, "value": values[max(values)], "state": trial.state.name.lower(),
            "epochs": max(values), "params": trial.params, "curve": [values[epoch] for epoch in sorted(values)]}


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
    groups = groups_of(_left(made, running), model, memory)
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
            groups = groups_of(_left(made, running), model, memory)


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
