"""Energies of a core by component: a table and a picture with bars."""

import matplotlib
from rich.table import Table

from ..compare.energy import EnergyComparison
from ..measure.area import BESIDE
from ..power.measure import Energy

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

#: Parts of an energy, as columns.
PARTS = ("switching", "internal", "clock", "leakage", "memories")
#: fJ.
_FJ = 1e15


def energy_table(energy: Energy) -> Table:
    """Components, that with most first."""
    table = Table(title=f"{energy.design.name}, {energy.workload}", title_justify="left", caption_justify="left",
                  caption=f"fJ a multiply-accumulate at {energy.period:.2f} ns; {energy.library}, recipe "
                  f"{energy.recipe}; {energy.macs:,} multiply-accumulates, elements busy for "
                  f"{energy.utilisation:.0%}; {energy.followed} of {energy.cycles:,} cycles with delays; "
                  f"{energy.compared:,} payloads equal the golden model's; not counted: clock tree, pads")
    table.add_column("component")
    for head in ("energy", "share", "settled", *PARTS):
        table.add_column(head, justify="right")
    whole = energy.total()
    for part in sorted(energy.components, key=lambda each: -each.energy):
        beside = part.name in BESIDE
        table.add_row(part.name, f"{part.energy * _FJ:,.1f}", "beside" if beside else f"{part.energy / whole:.1%}",
                      f"{part.settled * _FJ:,.1f}", *(f"{getattr(part, name) * _FJ:,.1f}" for name in PARTS))
    table.add_section()
    table.add_row("core with memories", f"{whole * _FJ:,.1f}", "", f"{energy.total(True) * _FJ:,.1f}",
                  *(f"{sum(getattr(part, name) for part in energy.components if part.name not in BESIDE) * _FJ:,.1f}"
                    for name in PARTS))
    return table


def against_table(found: EnergyComparison) -> Table:
    """What other numbers take at the same clock."""
    slow = any(other.longest > other.period for other in found.baselines.values())
    table = Table(title=f"Other numbers at {found.energy.period:.2f} ns", title_justify="left", caption_justify="left",
                  caption="* slower than the clock: no buffers behind gates that drive many" if slow else None)
    table.add_column("core")
    for head in ("registers", "group", "longest path, ns", "fJ a MAC", "over this core", "settled", "elements alone"):
        table.add_column(head, justify="right")
    for name, other in found.baselines.items():
        both = [next(part.energy for part in each.components if part.name == "elements")
                for each in (other, found.energy)]
        longest = f"{other.longest:.2f}{'*' * (other.longest > other.period)}"
        table.add_row(name, str(other.design.pipeline), "{} x {}".format(*other.design.group), longest,
                      f"{other.total() * _FJ:,.1f}", f"{found.against[name]:.2f}", f"{other.total(True) * _FJ:,.1f}",
                      f"{both[0] / both[1]:.2f}")
    return table


def energy_plot(found: EnergyComparison) -> plt.Figure:
    """A bar for each component: what settles, and what glitches take; below it the cores side by side."""
    parts = sorted((part for part in found.energy.components if part.energy > 0), key=lambda each: each.energy)
    cores = {found.energy.design.arithmetic: found.energy, **found.baselines}
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 1.6 + 0.3 * len(parts)), layout="constrained",
                                         width_ratios=(3, 2))
    for axes, names, settled, whole in (
            (left, [part.name for part in parts], [part.settled * _FJ for part in parts],
             [part.energy * _FJ for part in parts]),
            (right, list(cores), [core.total(True) * _FJ for core in cores.values()],
             [core.total() * _FJ for core in cores.values()])):
        axes.barh(names, settled, color="C0", label="settled")
        axes.barh(names, [both - still for both, still in zip(whole, settled, strict=True)], left=settled, color="C1",
                  label="glitches")
        for place, value in enumerate(whole):
            axes.text(value + 0.01 * max(whole), place, f"{value:,.0f}", va="center", fontsize=7)
        axes.set_xlim(0, 1.2 * max(whole))
        axes.set_xlabel("fJ a multiply-accumulate", fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(fontsize=7, loc="lower right")
    left.set_title("components", fontsize=9)
    right.set_title(f"cores at {found.energy.period:.2f} ns", fontsize=9)
    figure.suptitle(f"{found.energy.design.name}, {found.energy.workload}, {found.energy.library}", fontsize=8)
    return figure
