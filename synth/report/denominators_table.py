"""The table of what ratios divide by: floats by group and multiplier, the smallest of each kind in bold."""

from rich.table import Table

from ..compare.baselines import BASELINES
from ..compare.denominators import Denominators


def table(found: Denominators) -> Table:
    """Areas of float cores, and those over each core of blocks; the smallest of each kind of float in bold.

    Parameters
    ----------
    found : synth.compare.denominators.Denominators
    """
    report, best = found.floats[0], found.smallest
    library = report.library["name"] if report.library else "generic gates"
    result = Table(title=f"NAND2-equivalents per MAC, recipe {report.recipe}, {library}; over cores of blocks",
                   title_justify="left", caption=_smallest_line(best), caption_justify="left")
    for head in ("float", "multiplier", "group"):
        result.add_column(head, no_wrap=True)
    names = list(found.ratios(report))
    for head in ("element", "core", *names):
        result.add_column(head, justify="right")
    last = None
    for each in found.floats:
        design, scopes = each.design, each.scopes()
        if last not in (None, design.arithmetic):
            result.add_section()
        last = design.arithmetic
        result.add_row(BASELINES[design.arithmetic], design.multiplier, "{} x {}".format(*design.group),
                       f"{scopes['element']:,.1f}", f"{scopes['core']:,.1f}",
                       *(f"{ratio:.2f}" for ratio in found.ratios(each).values()),
                       style="bold" if each is best[design.arithmetic] else None)
    return result


def _smallest_line(best):
    """The smallest core of each kind of float."""
    parts = [f"{BASELINES[name]} {each.scopes()['core']:,.1f} ({each.design.multiplier}, "
             "{} x {})".format(*each.design.group) for name, each in best.items()]
    return f"smallest: {'; '.join(parts)}"
