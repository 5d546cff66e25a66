"""The picture of a run: how busy each unit is, how much of the time it waits, and where layers end."""

from pathlib import Path

import numpy as np

from hbfp.isa.instructions import Unit
from hbfp.program import Program

from ..pictures import COLOURS, figure, save
from .times import Times, layers_of

#: Columns of the picture; a run is cut into as many stretches of cycles.
COLUMNS = 600
#: Lines above the picture in which names of layers stand; what fits none of them is left out.
LINES = 3


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


def _name(made, axes, names, places):
    """Write names above their places, each in the lowest line in which it stands beside the one before."""
    made.canvas.draw()    # so that widths are known
    free = [0.0] * LINES
    for name, place in zip(names, places.tolist(), strict=True):
        text = axes.annotate(name, (place, 1), xycoords=axes.get_xaxis_transform(), xytext=(0, 2), fontsize=7,
                             textcoords="offset points", ha="center", va="bottom", annotation_clip=False)
        box = text.get_window_extent()
        line = next((each for each in range(LINES) if box.x0 > free[each]), None)
        if line is None or box.x1 > made.bbox.width:
            text.remove()
            continue
        free[line] = box.x1 + box.height / 2
        text.xyann = (0, 2 + 9 * line)


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
        axes.fill_between(at, busy, step="post", color=COLOURS[0], linewidth=0)
        axes.set_xlim(0, max(times.cycles, 1))
        axes.set_ylim(0, 1.05)
        axes.set_yticks([0, 1])
        axes.set_ylabel(unit.name.lower(), rotation=0, ha="right", va="center")
        axes.tick_params(labelbottom=unit == max(Unit))
        for border in borders:
            axes.axvline(border, color="gray", linewidth=0.6)
    made.suptitle(title, fontsize=10)
    panels[0].set_title("\n" * LINES, fontsize=7)    # room for the names
    _name(made, panels[0], [name for name, *_ in layers], (np.append(0, borders[:-1]) + borders) / 2)
    panels[-1].set_xlabel("cycles; share of the time that a unit works (blue) or its next instruction waits (grey); "
                          "a line where a layer is complete")
    save(made, path)
    return path
