"""Pictures of the design space and of the dispatcher; every line carries its name at its end."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hbfp import files

from .space import Point

#: Readable with colour-blind eyes (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
#: Least distance of two labels, as a share of the axis.
GAP = 0.055


def figure(count: int, rows: int = 1, width: float = 6.2) -> tuple[Figure, Any]:
    """A figure of so many panels in a row, ``width`` inches each; the panels one after the other."""
    made = Figure((width * count, 4.2 * rows), layout="constrained")
    FigureCanvasAgg(made)
    axes = made.subplots(rows, count, squeeze=False).reshape(-1)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return made, axes


def save(made: Figure, path: Path) -> None:
    """Write a figure as PNG."""
    with files.replacing(path) as temporary:
        made.savefig(temporary, dpi=120, format="png")


def covers(one: tuple[Sequence[float], Sequence[float]], other: tuple[Sequence[float], Sequence[float]]) -> bool:
    """Whether two lines, each (x, y), share a stretch: two points in a row, to 2 % of what they span."""
    height = max(*one[1], *other[1]) - min(*one[1], *other[1])
    at = dict(zip(*other, strict=True))
    near = [x in at and abs(at[x] - y) <= 0.02 * height for x, y in zip(*one, strict=True)]
    return any(both == (True, True) for both in pairwise(near))


def lines(axes: Any, drawn: dict[str, tuple[Sequence[float], Sequence[float]]], labels: bool = True) -> None:
    """Draw name -> (x, y), each name beside its last point, moved apart where they would meet.

    A line that others cover is wider, so that it is seen on both sides of them.
    """
    ends, curves = [], list(drawn.values())
    for number, ((name, (x, y)), colour) in enumerate(zip(drawn.items(), COLOURS, strict=False)):
        width = 1.4 + 2.2 * sum(covers(other, (x, y)) for other in curves[number + 1:])
        axes.plot(x, y, color=colour, marker=".", markersize=2.5 + width, linewidth=width)
        ends.append((name, x[-1], y[-1], colour))
    if not labels:
        return
    axes.autoscale_view()
    low, high = axes.get_ylim()
    fraction = axes.transAxes.inverted()
    heights = [(fraction.transform(axes.transData.transform((x, y)))[1], name, colour) for name, x, y, colour in ends]
    heights.sort()
    last = -GAP
    placed = [last := max(height, last + GAP) for height, _, _ in heights]
    down = max(placed[-1] - 1.0, 0.0)    # a crowd at the top moves down as a whole
    for place, (_, name, colour) in zip(placed, heights, strict=True):
        axes.annotate(name, (1.01, place - down), xycoords="axes fraction", color=colour, va="center", fontsize=9)
    axes.set_ylim(low, high)


def space(path: Path, fronts: dict[str, list[Point]], title: str) -> None:
    """Throughput and power against latency, a line for each number; ``fronts``: name -> points of its front."""
    drawn, (left, right) = figure(2)
    shown = {name: found for name, found in fronts.items() if found}
    for axes, value, label in ((left, "tops", "TOp/s"), (right, "watts", "W")):
        axes.set_xscale("log")
        lines(axes, {name: ([each.latency_us for each in found], [getattr(each, value) for each in found])
                      for name, found in shown.items()}, labels=value == "tops")
        axes.set_xlabel("latency, us")
        axes.set_ylabel(label)
    left.set_title(f"Most throughput, {title}", fontsize=10)
    right.set_title("Power of the same designs", fontsize=10)
    right.set_ylim(0, 1.2 * right.get_ylim()[1])
    save(drawn, path)


def dispatch(path: Path, result: dict[str, list[dict[str, Any]]]) -> None:
    """Latency, training and fill against load; p99 against timeout; training beside inference against bandwidth."""
    drawn, axes = figure(3, rows=2)
    policies = list(dict.fromkeys(row["policy"] for row in result["loads"]))
    for each, value, label in zip(axes[:3], ("p99", "training", "fill"), (
            "99 % of the latencies are below, times of a batch", "time for training, share", "fill of a batch, share"),
            strict=True):
        lines(each, {name: ([row["load"] for row in result["loads"] if row["policy"] == name],
                             [row[value] for row in result["loads"] if row["policy"] == name]) for name in policies})
        each.set_xlabel("load")
        each.set_ylabel(label)
    axes[1].plot((0, 1), (1, 0), color="#999999", linestyle=":", linewidth=1)
    axes[1].annotate("all idle time", (0.02, 0.93), color="#777777", fontsize=9)
    loads = list(dict.fromkeys(row["load"] for row in result["timeouts"]))
    for each, value, label in zip(axes[3:5], ("p99", "training"), (
            "99 % of the latencies are below, times of a batch", "time for training, share"), strict=True):
        lines(each, {f"load {load:g}": ([row["timeout"] for row in result["timeouts"] if row["load"] == load],
                                         [row[value] for row in result["timeouts"] if row["load"] == load])
                      for load in loads})
        each.set_xlabel("timeout, times of a batch")
        each.set_ylabel(label)
    chosen = [(name, load) for name in dict.fromkeys(row["workload"] for row in result["training"])
              for load in (0.1, 0.5, 0.9)]
    lines(axes[5], {f"{name}, {load:g}": (
        [row["gigabytes"] for row in result["training"] if (row["workload"], row["load"]) == (name, load)],
        [row["speed"] for row in result["training"] if (row["workload"], row["load"]) == (name, load)])
        for name, load in chosen})
    axes[5].set_xscale("log", base=2)
    axes[5].set_xlabel("DRAM, GB/s")
    axes[5].set_ylabel("training beside inference over training alone")
    save(drawn, path)
