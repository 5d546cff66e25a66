"""Picture of an accelerator's area: a bar for each component."""

import matplotlib

from ..measure.accelerator import AcceleratorReport
from ..measure.memories import label

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def component_plot(report: AcceleratorReport) -> plt.Figure:
    """Components, that with the most logic first: left their logic, right their memories."""
    found = sorted(report.components.items(), key=lambda item: item[1].area)
    names = [name for name, _ in found]
    panels = (("logic", [figures.area / 1000 for _, figures in found], [f"{report.share(name):.1%}" for name in names]),
              (f"memories, {label(report.bit)}", [figures.memories(report.bit) / 1000 for _, figures in found],
               [f"{figures.bits:,} bits" for _, figures in found]))
    figure, both = plt.subplots(1, 2, figsize=(10, 1.3 + 0.3 * len(found)), sharey=True, layout="constrained")
    for n, (axes, (title, values, texts)) in enumerate(zip(both, panels, strict=True)):
        axes.barh(names, values, color=f"C{n}")
        most = max(values)
        for place, (value, text) in enumerate(zip(values, texts, strict=True)):
            if value:
                axes.text(value + 0.01 * most, place, f"{value:,.1f}, {text}", va="center", fontsize=7)
        axes.set_xlim(0, 1.35 * most or 1)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("1000 NAND2-equivalents")
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{report.system.name}, recipe {report.recipe}", fontsize=8)
    return figure
