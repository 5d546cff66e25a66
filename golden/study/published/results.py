"""What the seeds of all formats of a task gave: table, picture, curves as CSV, everything as JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hbfp import files

from .task import METRICS, Task

#: Columns of the curves.
COLUMNS = ("format", "seed", "step", "epoch", "loss", "rate", "test loss")


def load(path: Path) -> dict[str, Any] | None:
    """A result that was written, or None."""
    return json.loads(path.read_text()) if path.exists() else None


def of_seeds(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean of the seeds, and deviation of a sample; None of one seed."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


def rows(task: Task, found: Mapping[str, Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """A row for each format of the table and each that was run.

    Parameters
    ----------
    task : Task
        Whose table it is.
    found : dict
        Format -> results of its seeds.

    Returns
    -------
    list of dict
        ``format``, ``ours`` (mean), ``deviation`` (of a sample; None of one seed), ``seeds``, ``published``; None where
        there is none.
    """
    table = []
    for name in dict.fromkeys((*task.formats, *found)):
        values = [result["value"] for result in found.get(name, ())]
        ours, deviation = of_seeds(values) if values else (None, None)
        table.append({"format": name, "ours": ours, "deviation": deviation, "seeds": len(values),
                      "published": task.published.get(name)})
    return table


def cells(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """A row as a table shows it: format, ours, seeds, published."""
    ours = "" if row["ours"] is None else f"{row['ours']:.2f}"
    ours += "" if row["deviation"] is None else f" ± {row['deviation']:.2f}"
    published = "" if row["published"] is None else f"{row['published']:g}"
    return row["format"], ours, str(row["seeds"] or ""), published


def write(task: Task, found: Mapping[str, Sequence[dict[str, Any]]], note: str, folder: Path) -> None:
    """Write ``NAME.json``, ``NAME.csv`` and, if anything was trained, ``NAME.png``."""
    results = [result for each in found.values() for result in each]
    files.write_json(folder / f"{task.name}.json", {
        "task": task.name, "title": task.title, "metric": task.metric, "source": task.source, "data": note,
        "rows": rows(task, found), "results": results})
    curves = [{"format": name, "seed": result["seed"]} | point for name, each in found.items() for result in each
              for point in result["curve"]]
    files.write_csv(folder / f"{task.name}.csv", (*COLUMNS, task.metric), curves)
    if task.recipe:
        picture(task, found, folder / f"{task.name}.png")


def picture(task: Task, found: Mapping[str, Sequence[dict[str, Any]]], path: Path) -> None:
    """Metric and training loss by epoch, mean of the seeds with a band of one deviation, as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    figure = Figure((10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    unit, words = METRICS[task.metric]
    for axes, what, label in zip(figure.subplots(1, 2), (task.metric, "loss"),
                                 (f"test data: {words}{', ' * bool(unit)}{unit}", "training loss"), strict=True):
        for name, each in found.items():
            if not each:
                continue
            curves = [[point[what] for point in result["curve"]] for result in each]
            length = min(map(len, curves))
            epochs = [point["epoch"] for point in each[0]["curve"]][:length]
            numbers = np.array([curve[:length] for curve in curves])
            mean, spread = numbers.mean(0), numbers.std(0)
            line, = axes.plot(epochs, mean, marker="." if length < 20 else None, label=name)
            axes.fill_between(epochs, mean - spread, mean + spread, color=line.get_color(), alpha=0.2, linewidth=0)
        if task.published and what == task.metric:
            for name, value in task.published.items():
                axes.axhline(value, color="#999999", linewidth=0.6, linestyle=":")
                axes.annotate(f"published {name}", (1, value), xycoords=("axes fraction", "data"), fontsize=6,
                              ha="right", va="bottom")
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylabel(label)
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8)
    figure.suptitle(task.title, fontsize=11)
    with files.replacing(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
