"""Training beside inference over the bandwidth of the DRAM: the table and the picture of several shifts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from ...pictures import COLOURS, figure, save
from .limits import limit


def table(points: Sequence[dict[str, Any]], title: str) -> Table:
    """A row for each bandwidth, of what :meth:`.shift.Served.as_dict` says there: cycles, training over what inference
    leaves idle and over what a machine alone would do, and what is busy longest."""
    made = Table(title=title, title_justify="left")
    trains = all("step" in each for each in points)
    for name in ("bytes a cycle", "batch, S", "p99, S", *(
            ("step", "of idle", "of alone", "bound by", "alone by") if trains else ())):
        made.add_column(name, justify="right", no_wrap=name in ("batch, S", "step"))    # what is narrow cuts no digit
    for each in points:
        row = [f"{each['bandwidth']:,}", f"{each['service']:,}", f"{each['p99'] / each['service']:.2f}"]
        if trains:
            row += [f"{each['step']:,}", f"{each['of_idle']:.3f}", f"{each['of_dedicated']:.3f}",
                    *(bound_by(each[name]) for name in ("limits", "limits_alone"))]
        made.add_row(*row)
    return made


def bound_by(found: dict[str, float]) -> str:
    """What is busy longest, and for which part of the cycles."""
    name = limit(found)
    return f"{name} {found[name]:.0%}"


def draw(path: Path, points: Sequence[dict[str, Any]], title: str) -> Path:
    """Write the picture as PNG: the training's share of a dedicated trainer and of what is idle, and how busy a step
    has array, vector unit, bus and DRAM.

    Parameters
    ----------
    path : Path
    points : sequence of dict
        With training.
    title : str
    """
    made, (shares, busy) = figure(2)
    made.suptitle(title, fontsize=10)
    points = sorted(points, key=lambda each: each["bandwidth"])
    at = [each["bandwidth"] for each in points]
    for name, text, colour in (("of_dedicated", "of a trainer alone", COLOURS[0]),
                               ("of_idle", "of what is idle", COLOURS[2])):
        shares.plot(at, [each[name] for each in points], color=colour, marker="o", label=text)
    for name, colour in zip(points[0]["limits"], COLOURS, strict=False):
        busy.plot(at, [each["limits"][name] for each in points], color=colour, marker="o", label=name)
        busy.plot(at, [each["limits_alone"][name] for each in points], color=colour, linestyle=":")
    for axes, text in ((shares, "Training"), (busy, "A step: what is busy (dotted: of a trainer alone)")):
        axes.set_xscale("log", base=2)
        axes.set_xticks(at, [str(each) for each in at])
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("bandwidth of the DRAM, bytes a cycle")
        axes.set_title(text, fontsize=9, loc="left")
        axes.legend(fontsize=8)
    save(made, path)
    return path
