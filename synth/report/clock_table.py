"""The table of a sweep's equal clocks: one row per core of blocks."""

from collections.abc import Sequence

from rich.table import Table

from ..compare.baselines import BASELINES
from ..compare.clocks import Clocks
from .tables import number


def table(found: Sequence[Clocks]) -> Table:
    """The smallest float of each kind that meets the clock of each core of blocks, and its area over it.

    Where none meets it, the quickest stands in brackets with its period.

    Parameters
    ----------
    found : list of synth.compare.clocks.Clocks
    """
    result = Table(title=f"At the clock of each core, recipe {found[0].own.report.recipe}: NAND2-equivalents per MAC",
                   title_justify="left", padding=0, caption_justify="left", caption="floats: registers inside each "
                   "multiply-add, group, multiplier; (quickest of its kind, if none meets the clock)")
    result.add_column("core", no_wrap=True)
    for head in ("registers", "ns", "core"):
        result.add_column(head, justify="right")
    for name in found[0].others:
        result.add_column(BASELINES[name])
        result.add_column("NAND2", justify="right")
        result.add_column("/ core", justify="right")
    for each in found:
        own, cells = each.own, []
        for name, met in each.equal("core").items():
            cells += _float_cells(met or each.quickest(name), own, bool(met))
        result.add_row(own.kind, str(own.pipeline), f"{own.period():.2f}", number(own.area), *cells)
    return result


def _float_cells(point, own, meets):
    """A float beside a core of blocks: what it is, its area, the ratio."""
    text = "{}, {} x {}, {}".format(point.pipeline, *point.group, point.report.design.multiplier)
    ratio = f"{point.area / own.area:.2f}"
    if meets:
        return [text, number(point.area), f"[bold]{ratio}[/bold]"]
    return [f"({text}: {point.period():.2f} ns)", number(point.area), f"({ratio})"]
