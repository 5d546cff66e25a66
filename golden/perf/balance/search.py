"""The search of ``golden balance``: Optuna proposes options, processes find cycles, its journal keeps the trials."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import joblib
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from hbfp import describe, files
from hbfp.presets import SYSTEMS
from hbfp.system import FUNCTIONS, Accelerator

from . import point as balance
from .point import Point

#: Of the accelerators that are tried, and their rows.
_COLUMNS = 32
#: Option -> what is tried, the default's value among them.
CHOICES: dict[str, Sequence[Any]] = {
    "lanes": [f"{lanes},{functions}" for lanes, functions in balance.lanes()], "side_lanes": balance.side_lanes(),
    "depth": (64, 128, 256, 512), "x_words": (2048, 4096, 8192), "w_words": (512, 1024, 2048, 4096),
    "v_words": (1024, 2048, 4096), "p_words": (256, 512), "row_words": (24, 32), "vector_rows": (3, 4, 8),
    "register_copies": (1, 3),
    "memory_banks": (0, 2, 4, 8), "queue": (2, 4), "reads": (8, 16), "burst": (8, 16)}
def _chosen(preset: dict[str, Any]) -> dict[str, Any]:
    """What a search would have to choose for a preset."""
    given = describe.flat(Accelerator()) | preset
    lanes = given["vector_lanes"] or _COLUMNS
    return {name: given[name] for name in CHOICES if name != "lanes"} | {
        "lanes": f"{lanes},{given['function_lanes'] or lanes}", "side_lanes": given["side_lanes"] or _COLUMNS}


#: The default accelerator, and where a search begins: it, and the presets.
USUAL = _chosen({})
SEEDS = (USUAL, *map(_chosen, SYSTEMS.values()))


def values(chosen: dict[str, Any], needed: Sequence[str]) -> dict[str, Any]:
    """Options of an accelerator from what was chosen, and the functions that networks need."""
    lanes, functions = map(int, chosen["lanes"].split(","))
    if chosen != USUAL:
        chosen = chosen | {"functions": tuple(needed)}
    return {name: value for name, value in chosen.items() if name != "lanes"} | {
        "vector_lanes": lanes % _COLUMNS, "function_lanes": functions % lanes if needed else 0,
        "side_lanes": chosen["side_lanes"] % _COLUMNS, "rows": _COLUMNS}


def search(networks: Sequence[str], growth: dict[str, float], trials: int, folder: Path, jobs: int, seed: int,
           report: Callable[[int, int], object]) -> list[Point]:
    """Points that were tried, the default's first; a search that was stopped goes on where it was.

    Parameters
    ----------
    networks : sequence of str
    growth : dict
        Network -> how much more cycles than the default's are allowed, as a share; beyond it a trial is worse the more
        it is.
    trials : int
        In all.
    folder : Path
        Holds Optuna's journal.
    jobs : int
        Processes.
    seed : int
        Of the proposals.
    report : callable
        Called with the trials that are done, and all.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    folder.mkdir(parents=True, exist_ok=True)
    with files.lock(folder / "balance.journal"):
        study = optuna.create_study(
            study_name="balance " + " ".join(networks), directions=["minimize"] * (1 + len(networks)),
            load_if_exists=True, storage=JournalStorage(JournalFileBackend(str(folder / "balance.journal"))))
        done = [each for each in study.get_trials(deepcopy=False) if each.state.is_finished()]
        study.sampler = optuna.samplers.TPESampler(seed=seed + len(done), multivariate=True)
        if not done:
            for each in SEEDS:
                study.enqueue_trial(each, skip_if_exists=True)
        needed = [name for name in FUNCTIONS if any(name in balance.functions(each) for each in networks)]
        points = [balance.point(values(each.params, needed), networks) for each in done]
        with joblib.Parallel(jobs) as workers:
            while len(points) < trials:
                report(len(points), trials)
                asked = [study.ask() for _ in range(min(max(1, jobs), trials - len(points)))]
                wanted = [values({name: each.suggest_categorical(name, choices) for name, choices in CHOICES.items()},
                                 needed) for each in asked]
                found = workers(joblib.delayed(balance.point)(each, networks) for each in wanted)
                points += found
                for trial, each in zip(asked, found, strict=True):
                    _tell(study, trial, each, points[0], growth)
    report(trials, trials)
    return points


def _tell(study, trial, point, usual, growth):
    """What a trial gave; a network that does not fit counts as ten times the default's cycles."""
    taken = {name: each if each is not None else 10 * usual.cycles[name] for name, each in point.cycles.items()}
    for name, allowed in growth.items():
        trial.set_constraint(name, taken[name] / usual.cycles[name] - 1 - allowed)
    study.tell(trial, [point.area, *taken.values()])
