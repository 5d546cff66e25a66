"""Pictures: a schedule, pods by rounds; and one of each study."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps

from ..pictures import figure, lines, save
from .simulate import Scheduled

#: Most rounds that are all drawn; of more, every second, third and so on is drawn.
COLUMNS = 1600
#: Colour scales of the tenants; neighbouring products differ in shade.
SCALES = ("Blues", "Oranges", "Greens", "Purples")


def schedule(path: Path, outcome: Scheduled, names: Sequence[str]) -> None:
    """Pods by rounds, a colour for each tenant, a shade for each of its products; what is idle is white."""
    tiles, plan = outcome.tiles, outcome.plan
    gemm = np.searchsorted(tiles.first_op, np.arange(tiles.operations), "right") - 1
    image = np.ones((outcome.machine.pods, len(plan.length), 3))
    for number in range(len(names)):
        mine = outcome.tenant[gemm] == number
        first = int(np.flatnonzero(outcome.tenant == number)[0])
        # Neighbouring products differ in shade: 7 and 12 have no common factor.
        shade = 0.35 + 0.6 * ((gemm[mine] - first) * 7 % 12) / 12
        image[plan.pod[mine], plan.round[mine]] = colormaps[SCALES[number % len(SCALES)]](shade)[:, :3]
    image = image[:, ::max(1, -(-image.shape[1] // COLUMNS))]
    drawn, (axes,) = figure(1, width=14)
    axes.imshow(image, aspect="auto", interpolation="nearest", extent=(0, len(plan.length), outcome.machine.pods, 0))
    axes.set_xlabel("round")
    axes.set_ylabel("pod")
    axes.set_title("; ".join(f"{name}: {SCALES[number % len(SCALES)].lower()}" for number, name in enumerate(names))
                   + f"; {outcome.cycles} cycles", fontsize=10)
    save(drawn, path)


def study(path: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """The picture of a study."""
    drawn, (axes,) = figure(1)
    DRAW[name](axes, rows)
    save(drawn, path)


def _grouped(rows, key, x, y):
    """Name -> (x, y) for each value of a column."""
    names = list(dict.fromkeys(row[key] for row in rows))
    return {str(name): ([row[x] for row in rows if row[key] == name and y in row],
                        [row[y] for row in rows if row[key] == name and y in row]) for name in names}


def _granularity(axes, rows):
    axes.set_xscale("log", base=2)
    lines(axes, _grouped(rows, "constants", "size", "tops") | {"published, simulated": _grouped(
        rows, "constants", "size", "simulated_tops")["published"]})
    axes.set_xlabel("rows and columns of an array")
    axes.set_ylabel("TOp/s within the budget, harmonic mean")


def _partition(axes, rows):
    lines(axes, {"": ([row["partition"] for row in rows], [row["tops"] for row in rows])})
    axes.set_xlabel("rows of X in an operation")
    axes.set_ylabel("TOp/s, harmonic mean")
    axes.set_ylim(0)


def _bars(axes, names, values, label):
    longest = max(map(len, names))
    axes.figure.set_size_inches(5 + 0.09 * longest, 1.2 + 0.28 * len(names))
    axes.barh(names, values, color="#0072b2")
    axes.margins(x=0.12)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    for place, value in enumerate(values):
        axes.annotate(f"{value:.3g}", (value, place), va="center", fontsize=8, xytext=(2, 0),
                      textcoords="offset points")


def _interconnect(axes, rows):
    _bars(axes, [row["interconnect"] for row in rows], [row["tops"] for row in rows], "TOp/s, harmonic mean")


def _banks(axes, rows):
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    wide = sorted({row["gigabytes"] for row in rows})[-2:]
    picked = [row | {"line": f"{row['network']}, {row['gigabytes']} B/cycle"} for row in rows
              if row["gigabytes"] in wide]
    lines(axes, _grouped(picked, "line", "bank", "over_ideal"))
    axes.set_xlabel("kB of a bank")
    axes.set_ylabel("cycles over those with everything there")


def _tenancy(axes, rows):
    _bars(axes, [f"{row['tenants']}, {row['pods']} pods, {row['policy']}" for row in rows],
          [row["gain"] for row in rows], "one after the other over together, cycles")


def _fused(axes, rows):
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    lines(axes, _grouped([row | {"line": f"{row['model'].split(',')[0]}, {row['pods']} pods"} for row in rows],
                         "line", "models", "gain"))
    axes.set_xlabel("models in a job")
    axes.set_ylabel("one after the other over fused, cycles")


DRAW: dict[str, Callable[[Any, list[dict[str, Any]]], None]] = {
    "granularity": _granularity, "partition": _partition, "interconnect": _interconnect, "banks": _banks,
    "tenancy": _tenancy, "fused": _fused}
