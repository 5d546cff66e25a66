"""What the runs gave: a row for each format, as a table, as JSON and as pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Column, Table

from ..published.results import of_seeds
from .choice import Choice
from .user import User

#: Points of a learning curve.
POINTS = 60


def rows(results: Sequence[dict[str, Any]], post: bool) -> list[dict[str, Any]]:
    """A row for each format, in the order of the results; with ``post`` of formats that take learned weights.

    Returns
    -------
    list of dict
        ``name``; ``metric``, the mean over the seeds; ``deviation`` (of a sample; None of one seed); ``qsnr``, in dB
        over all operands (None: none was converted, or nothing lost), and ``qsnr_by_operand``; ``bits`` a value;
        ``area``, NAND2-equivalents, and ``energy``, fJ, of a multiply-accumulate in a core of 32 x 32 of this project,
        None where none was measured; ``values`` and ``curves`` of each seed; ``together``; ``seconds``.
    """
    found = []
    for result in results:
        qsnr, (mean, deviation) = result["qsnr"], of_seeds(result["values"])
        found.append(Choice.of(result["name"]).json(post) | {
            "metric": mean, "deviation": deviation,
            "qsnr": qsnr and qsnr["all"], "qsnr_by_operand": qsnr and {role: qsnr[role] for role in "xwg"},
            "values": result["values"], "curves": result["curves"], "together": result["together"],
            "seconds": result["seconds"]})
    return found


def table(user: User, found: Sequence[dict[str, Any]], seeds: int) -> Table:
    """The rows as people read them."""
    better = "higher" if user.higher else "lower"
    names = ("format", "bits", "metric", "QSNR x", "w", "g, dB", "NAND2", "fJ a MAC")
    shown = Table(*(Column(name, no_wrap=True) for name in names),
                  title=f"{Path(user.text).name}, {seeds} seed{'s' * (seeds > 1)}; metric: {user.title}; {better} is "
                        "better")
    best = max(found, key=lambda row: row["metric"] if user.higher else -row["metric"])
    for row in found:
        spread = "" if row["deviation"] is None else f" ± {row['deviation']:.2g}"
        qsnr = row["qsnr_by_operand"] or {}
        shown.add_row(row["name"], f"{row['bits']:.4g}", f"{row['metric']:.4g}{spread}",
                      *(_number(qsnr.get(role), ".1f") for role in "xwg"), _number(row["area"], ",.0f"),
                      _number(row["energy"], ",.0f"), style="bold" if row is best else "")
    return shown


def _number(value, how):
    return "" if value is None else format(value, how)


def picture(user: User, found: Sequence[dict[str, Any]], path: Path) -> None:
    """Learning curves, and the metric over bits a value and over area, as PNG; bands and bars are one deviation."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    learned = [row for row in found if row["curves"][0]]
    panels = 2 + bool(learned)
    figure = Figure((5.2 * panels, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(1, panels))
    colours = {row["name"]: colormaps["tab20"](number % 20) for number, row in enumerate(found)}
    if learned:
        _curves(axes.pop(0), learned, colours)
    for panel, what, label in zip(axes, ("bits", "area"), (
            "bits a value", "NAND2-equivalents of a multiply-accumulate, where measured"), strict=True):
        _points(panel, user, [row for row in found if row[what] is not None], what, colours)
        panel.set_xlabel(label)
    figure.legend(handles=[Line2D([], [], marker="o", color=colour, label=name) for name, colour in colours.items()],
                  loc="outside lower center", ncols=min(8, len(found)))
    figure.savefig(path, dpi=120)


def _curves(axes, found, colours):
    starts, least = [], []
    for row in found:
        steps = min(map(len, row["curves"]))
        width = max(1, -(-steps // POINTS))
        curves = np.array([curve[:steps] for curve in row["curves"]])
        ends = np.arange(width, steps + 1, width)
        points = np.array([curves[:, end - width:end].mean(1) for end in ends])           # (points, seeds)
        mean, spread = points.mean(1), points.std(1)
        axes.plot(ends, mean, color=colours[row["name"]])
        axes.fill_between(ends, mean - spread, mean + spread, color=colours[row["name"]], alpha=0.2, linewidth=0)
        starts.append(mean[0])
        least.append((mean - spread).min())
    height = max(starts) - min(least)
    if axes.get_ylim()[1] > max(starts) + height:                      # what diverges leaves the picture
        axes.set_ylim(min(least) - 0.05 * height, max(starts) + 0.25 * height)
    axes.set_xlabel("step")
    axes.set_ylabel("training loss")


def front(found: Sequence[dict[str, Any]], what: str, higher: bool) -> list[dict[str, Any]]:
    """The rows that no other beats: less of ``what`` and no worse a metric, or as little and a better one."""
    def beaten(row):
        return any(other[what] <= row[what] and _worse(row, other, higher) >= 0
                   and (other[what] < row[what] or _worse(row, other, higher) > 0) for other in found)
    return sorted((row for row in found if not beaten(row)), key=lambda row: row[what])


def _worse(row, other, higher):
    """By how much a row's metric is worse than another's."""
    return (other["metric"] - row["metric"]) * (1 if higher else -1)


def _points(axes, user, found, what, colours):
    """The metric over what it costs; a line joins the rows that no other beats."""
    from matplotlib.ticker import NullFormatter, ScalarFormatter
    for row in found:
        axes.errorbar(row[what], row["metric"], yerr=row["deviation"] or 0, fmt="o", color=colours[row["name"]],
                      capsize=3)
    best = front(found, what, user.higher)
    axes.plot([row[what] for row in best], [row["metric"] for row in best], color="grey", linewidth=1, zorder=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel(user.title)
