"""Whole accelerators of several numbers, side by side: a table and a picture."""

from collections.abc import Mapping

import matplotlib
from rich.table import Table

from ..compare.machines import ratios
from ..measure.accelerator import AcceleratorReport
from ..measure.memories import label
from .tables import NOT_COUNTED, number

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

#: Components of which bars have a part of their own; the others are one.
APART = ("elements", "vector unit", "side unit", "accumulation")


def machines_table(reports: Mapping[str, AcceleratorReport]) -> Table:
    """Areas of machines, and how many times the first one's they are."""
    first = next(iter(reports))
    one = reports[first]
    result = Table(title=f"{one.system.name}, and the same of other numbers, recipe {one.recipe}",
                   title_justify="left", caption_justify="left",
                   caption=f"NAND2-equivalents; memories {label(one.bit)}; not counted: {NOT_COUNTED}")
    result.add_column("number")
    for head in ("logic", "memories", "everything", f"logic / {first}", f"everything / {first}"):
        result.add_column(head, justify="right")
    for name, row in ratios(reports).items():
        result.add_row(name, *(number(row[what]) for what in ("logic", "memories", "all")),
                       *(f"{row[what]:.3f}" if what in row else "" for what in ("logic_ratio", "all_ratio")))
    return result


def machines_plot(reports: Mapping[str, AcceleratorReport]) -> plt.Figure:
    """A bar for each machine, the first one on top: components of its logic, then memories."""
    names, rows = list(reports)[::-1], ratios(reports)
    figure, axes = plt.subplots(figsize=(9, 1.4 + 0.42 * len(names)), layout="constrained")
    left = dict.fromkeys(names, 0.0)

    def part(title, values, color):
        axes.barh(names, [values[name] / 1e6 for name in names], left=[left[name] / 1e6 for name in names],
                  label=title, color=color, height=0.7)
        for name in names:
            left[name] += values[name]
    areas = {name: {component: each.area for component, each in reports[name].components.items()} for name in names}
    for place, component in enumerate(APART):
        part(component, {name: areas[name].get(component, 0.0) for name in names}, f"C{place}")
    part("all other logic", {name: rows[name]["logic"] - left[name] for name in names}, f"C{len(APART)}")
    part(f"memories, {label(next(iter(reports.values())).bit)}",
         {name: rows[name]["memories"] for name in names}, "lightgrey")
    for place, name in enumerate(names):
        own = rows[name]
        text = " and ".join(f"{own[f'{what}_ratio']:.2f}" for what in ("logic", "all") if f"{what}_ratio" in own)
        axes.text(left[name] / 1e6, place, f" {left[name] / 1e6:.2f} ({text})", va="center", fontsize=8)
    axes.set_xlim(0, 1.25 * max(left.values()) / 1e6 or 1)
    axes.set_xlabel("million NAND2-equivalents; behind it how many times the first machine's logic, and everything")
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.45, 1.0))
    return figure
