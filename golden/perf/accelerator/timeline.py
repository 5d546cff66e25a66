"""The picture of a run: how busy each unit is, how much of the time it waits, and where layers end."""

from pathlib import Path

import numpy as np

from hbfp.isa.instructions import Unit
from hbfp.program import Program

from ..pictures import COLOURS, figure, save
from .times import Times, layers_of

#: Columns of the picture; a run is cut into as many stretches of cycles.
COLUMNS = 600
#: Layers whose names are written; of more only the borders are drawn.
NAMES = 16


def share(begins: np.ndarray, ends: np.ndarray, cycles: int, columns: int = COLUMNS) -> np.ndarray:
    """The part of each of ``columns`` equal stretches of a run that lies in any of the given spans."""
    edges = np.linspace(0, cycles, columns + 1)
    covered = np.zeros(columns + 1)
    last = 0
    for begin, end in sorted(zip(begins.tolist(), ends.tolist(), strict=True)):
        begin = max(begin, last)    # spans may overlap; a cycle counts once
        if end > begin:
            covered += np.clip(edges, begin, end) - begin
            last = end
    return np.diff(covered) * columns / cycles if cycles else np.zeros(columns)


def draw(path: Path, program: Program, times: Times, title: str) -> Path:
    """Write the picture as PNG.

    Parameters
    ----------
    path : Path
        Where to.
    program : Program
        What ran.
    times : Times
        When.
    title : str
        Of the picture.
    """
    made, panels = figure(1, rows=len(Unit), width=11)
    made.set_size_inches(11, 0.9 * len(Unit) + 1)
    at = np.linspace(0, times.cycles, COLUMNS, endpoint=False)
    units = np.array([each.unit or 0 for each in program.instructions])
    layers = layers_of(program)
    borders = np.maximum.accumulate([int(times.completed[first:stop].max(initial=0)) for _, first, stop, _ in layers])
    for axes, unit in zip(panels, Unit, strict=True):
        mine = units == unit
        waits = share(times.started[mine] - times.waited[mine], times.started[mine], times.cycles)
        busy = share(times.started[mine], times.completed[mine], times.cycles)
        axes.fill_between(at, waits, step="post", color="#cccccc", linewidth=0)
        axes.fill_between(at, busy, step="post", color=COLOURS[0], alpha=0.8, linewidth=0)
        axes.set_xlim(0, max(times.cycles, 1))
        axes.set_ylim(0, 1.05)
        axes.set_yticks([0, 1])
        axes.set_ylabel(unit.name.lower(), rotation=0, ha="right", va="center")
        axes.tick_params(labelbottom=unit == max(Unit))
        for border in borders:
            axes.axvline(border, color="gray", linewidth=0.6)
    if len(layers) <= NAMES:
        for (name, *_), begin, end in zip(layers, np.append(0, borders[:-1]), borders, strict=True):
            panels[0].annotate(name, ((begin + end) / 2, 1.1), ha="center", va="bottom", fontsize=7,
                               annotation_clip=False, rotation=20)
    made.suptitle(title, fontsize=10)
    panels[-1].set_xlabel("cycles; share of the time that a unit works (blue) or its next instruction waits (grey); "
                          "a line where a layer is complete")
    save(made, path)
    return path
