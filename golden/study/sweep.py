"""Many training runs: on the processors of this machine or of a Dask cluster, with the same results."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..command.workers import dask_workers
from .experiment import Run, train


def _one(run, folder):
    return train(run, folder)


def sweep(runs: Sequence[Run], folder: str | Path, *, jobs: int = -1, scheduler: str | None = None,
          console: Console | None = None) -> list[dict[str, Any]]:
    """Train every run that has no result yet; see :func:`golden.study.experiment.train`.

    Parameters
    ----------
    runs : sequence of Run
        What to train.
    folder : path
        Results and checkpoints; on a cluster a folder that all workers share. Started again, the
        sweep continues.
    jobs : int
        Processes, as of joblib; -1 is one per processor.
    scheduler : str, optional
        Address of a Dask scheduler, ``tcp://host:8786``.
    console : rich.console.Console, optional
        Where the progress bar goes; None shows none.

    Returns
    -------
    list of dict
        The results, in the order of ``runs``.
    """
    folder = Path(folder).resolve()
    with dask_workers(scheduler) if scheduler else nullcontext(), bar(console, len(runs)) as advance:
        results = []
        for result in joblib.Parallel(jobs, return_as="generator")(joblib.delayed(_one)(run, folder) for run in runs):
            results.append(result)
            advance()
    return results


class bar:
    """A progress bar over runs, or nothing; a context, in which it is called after each."""

    def __init__(self, console: Console | None, total: int, text: str = "training") -> None:
        self.progress = None if console is None else Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            console=console)
        self.total, self.text = total, text

    def __enter__(self):
        if self.progress is None:
            return lambda: None
        self.progress.start()
        task = self.progress.add_task(self.text, total=self.total)
        return lambda: self.progress.advance(task)

    def __exit__(self, *_):
        if self.progress is not None:
            self.progress.stop()


def summary(results: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float, int]]:
    """Per configuration in order of appearance: name -> (mean, deviation, seeds) of the accuracy.

    The deviation is that of a sample (n - 1); one seed has none, 0.
    """
    groups = defaultdict(list)
    for result in results:
        groups[result["name"]].append(result["accuracy"])
    return {name: (float(np.mean(v)), float(np.std(v, ddof=1)) if len(v) > 1 else 0.0, len(v))
            for name, v in groups.items()}


def picture(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Mean test accuracy and training loss of each configuration by epoch, with a band of one deviation, as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    figure = Figure((10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, what, label in zip(figure.subplots(1, 2), ("accuracy", "loss"), ("test accuracy, %", "training loss"),
                                 strict=True):
        groups = defaultdict(list)
        for result in results:
            groups[result["name"]].append([epoch[what] for epoch in result["curve"]])
        for name, curves in groups.items():
            mean, spread = np.mean(curves, 0), np.std(curves, 0)
            epochs = np.arange(1, len(mean) + 1)
            line, = axes.plot(epochs, mean, label=name)
            axes.fill_between(epochs, mean - spread, mean + spread, color=line.get_color(), alpha=0.2, linewidth=0)
        axes.set_xlabel("epoch")
        axes.set_ylabel(label)
    axes.legend()
    figure.savefig(path, dpi=120)
