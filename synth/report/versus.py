"""The largest cores of a device beside each other: a table and a picture."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from rich.table import Table

from .plots import new_figure

#: Kind of cell -> its name in the table.
NAMES = {"luts": "LUTs", "flipflops": "FFs", "rams": "RAMs", "dsps": "DSPs"}


def _ratio(value):
    return "" if value is None else f"{value:.2f}"


def table(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """A row a number: its largest core, shares of the device, clock and speed, and ratios to FP16."""
    result = Table(title=title, title_justify="left", caption_justify="left", caption=(
        "each core was mapped as a whole; model: its LUTs by the costs of small cores, over those counted; clocks: "
        "placed and routed, in brackets where that was a smaller core"))
    result.add_column("")
    for head in ("core", "elements", "/ FP16", *NAMES.values(), "binds", "model", "MHz", "GMAC/s", "/ FP16"):
        result.add_column(head, justify="right")
    for row in rows:
        result.add_row(
            row["title"], f"{row['rows']} x {row['cols']}", f"{row['elements']:,}", _ratio(row["ratio"]),
            *(f"{row['shares'][kind]:.0%}" for kind in NAMES), NAMES[row["binds"]],
            f"{row['guess']['luts'] / row['use']['luts']:.2f}",
            _clock(row), "" if row["gmacs"] is None else f"{row['gmacs']:.1f}", _ratio(row["speed"]))
    return result


def _clock(row):
    if row["clock"] is None:
        return ""
    text = f"{row['clock']:.1f}"
    return text if row["gmacs"] is not None else f"{text} ({' x '.join(map(str, row['placed']))})"


def picture(rows: Sequence[Mapping[str, Any]], device: str) -> plt.Figure:
    """Bars of elements, and of speeds where there are clocks, over FP16's."""
    figure, axes = new_figure()
    bars = {"ratio": "elements of the largest core", "speed": "multiply-accumulates a second, routed"}
    shown = [key for key in bars if any(row[key] is not None for row in rows)]
    for n, (key, label) in enumerate(bars.items()):
        shift = 0.4 * n - 0.2 if len(shown) > 1 else 0
        found = [(place + shift, row[key]) for place, row in enumerate(rows) if row[key] is not None]
        if found:
            drawn = axes.bar(*zip(*found, strict=True), width=0.38, color=f"C{n}", label=label)
            axes.bar_label(drawn, fmt="%.1f", fontsize=7)
    axes.set_xticks(range(len(rows)), [row["title"] for row in rows])
    axes.set_ylabel(f"over FP16 on {device}")
    axes.axhline(1, color="black", linewidth=0.8)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7)
    return figure
