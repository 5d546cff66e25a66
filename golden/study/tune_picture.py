"""The picture of a search: accuracy by epoch, a line for each trial, the best in colour."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hbfp import files

#: Trials that have a colour and a name.
NAMED = 6


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the picture as PNG; ``rows`` are those of :func:`golden.study.tune.tune`, the best first."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
    made = Figure((8, 4.2), layout="constrained")
    FigureCanvasAgg(made)
    axes = made.subplots()
    for place, row in reversed(list(enumerate(rows))):
        best = place < NAMED
        axes.plot(range(1, len(row["curve"]) + 1), row["curve"], marker=".", color=f"C{place}" if best else "#cccccc",
                  linewidth=2 if not place else 1, zorder=2 if best else 1,
                  label=f"trial {row['number']}: {row['value']:.2f} %" if best else None)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel("accuracy, %")
    axes.set_title(f"The best of {len(rows)} trials; those that end early were stopped", fontsize=10)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], frameon=False, fontsize=8)
    with files.replacing(path) as temporary:
        made.savefig(temporary, dpi=120, format="png")
