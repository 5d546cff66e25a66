"""The table of a sweep: one row per design."""

import itertools
from collections.abc import Callable, Sequence
from functools import partial

from rich.table import Table

from hbfp import describe

from ..compare.baselines import BASELINES
from ..compare.comparison import Comparison
from ..compare.design_space import AXES, FIRST
from ..measure.area import Report
from ..measure.memories import label
from .tables import number


def _option(name, report):
    """The text of an option that has no column of its own making."""
    value = describe.flat(report.design)[name]
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


#: Heads of what stands beside the core alone, and the scopes.
_BESIDE = {"+ side": "core and side", "+ RAM": "core and memories", "+ both": "everything"}
#: Head of a column -> its text, from a report; those of :data:`_ALWAYS` stand in every table, the others where they
#: differ between designs.
_COLUMNS: dict[str, Callable[[Report], str]] = {
    "W": lambda report: str(report.design.format.mantissa),
    "array": lambda report: f"{report.design.rows} x {report.design.cols}",
    "block": lambda report: "{} x {}".format(*report.design.format.block),
    "group": lambda report: "{} x {}".format(*report.design.group),
    "sums": lambda report: report.design.accumulate,
    "share": lambda report: str(report.design.share),
    "pipeline": lambda report: str(report.design.pipeline),
    **{name: partial(_option, name) for name in AXES if name not in FIRST and name != "cols"},
    "recipe": lambda report: report.recipe,
    "library": lambda report: report.library["name"] if report.library else "none",
}
_ALWAYS = ("W", "array", "block")


def table(comparisons: Sequence[Comparison]) -> Table:
    """One row per design: areas of its core, the smallest float cores and those of its own group over it, and it over
    integers."""
    texts = {head: [text(comparison.report) for comparison in comparisons] for head, text in _COLUMNS.items()}
    shown = {head: column for head, column in texts.items() if head in _ALWAYS or len(set(column)) > 1}
    names = list(comparisons[0].baselines)
    result = Table(title=f"NAND2-equivalents per MAC; memories: {label(comparisons[0].report.bit)}",
                   title_justify="left", padding=0, caption=_smallest_line(comparisons), caption_justify="left")
    for head in shown:
        result.add_column(head, no_wrap=True)
    heads = (["core / int"] if name == "int" else [f"{name} / core", "same group", *_BESIDE] for name in names)
    for head in ("element", "core", *_BESIDE, *itertools.chain(*heads)):
        result.add_column(head, justify="right")
    for n, comparison in enumerate(comparisons):
        scopes = comparison.report.scopes()
        cells = itertools.chain(*(_ratio_cells(comparison, name) for name in names))
        result.add_row(*(column[n] for column in shown.values()),
                       *(number(scopes[scope]) for scope in ("element", "core", *_BESIDE.values())), *cells)
    return result


def library_table(comparisons: Sequence[Comparison]) -> Table:
    """One row per design and recipe, the libraries side by side: the core, what floats take over it, it over integers.
    """
    texts = {head: [text(comparison.report) for comparison in comparisons] for head, text in _COLUMNS.items()}
    shown = [head for head, column in texts.items()
             if head != "library" and (head in _ALWAYS or len(set(column)) > 1)]
    rows: dict[tuple[str, ...], dict[str, Comparison]] = {}
    names = list(comparisons[0].baselines)
    for n, comparison in enumerate(comparisons):
        key = tuple(texts[head][n] for head in shown)
        rows.setdefault(key, {})[texts["library"][n]] = comparison
    libraries = list(dict.fromkeys(texts["library"]))
    result = Table(title="The libraries side by side: NAND2-equivalents per MAC of the core, and ratios to the "
                   "smallest cores found", title_justify="left", padding=0)
    for head in shown:
        result.add_column(head, no_wrap=True)
    for library in libraries:
        for head in (library, *("core / int" if name == "int" else f"{name} / core" for name in names)):
            result.add_column(head, justify="right")
    for key, found in rows.items():
        cells = []
        for library in libraries:
            each = found.get(library)
            cells += [""] * (1 + len(names)) if each is None else [
                number(each.report.scopes()["core"]),
                *(f"{1 / each.ratios[name]['core']:.3f}" if name == "int" else
                  f"[bold]{each.smallest_ratios[name]['core']:.2f}[/bold]" for name in names)]
        result.add_row(*key, *cells)
    return result


def _ratio_cells(comparison, name):
    """What the table says of one baseline; bold is the ratio to the smallest float core."""
    same, smallest = comparison.ratios[name]["core"], comparison.smallest_ratios[name]
    if name == "int":
        return [f"{1 / same:.3f}"]
    beside = (f"{smallest[scope]:.2f}" for scope in _BESIDE.values())
    return [f"[bold]{smallest['core']:.2f}[/bold]", f"{same:.2f}", *beside]


def _smallest_line(comparisons):
    """Which float cores are divided by the designs."""
    found = dict.fromkeys((BASELINES[name], other.design.group, other.scopes()["core"])
                          for comparison in comparisons for name, other in comparison.smallest.items() if name != "int")
    parts = [f"{text} {area:,.0f} in groups of {rows} x {cols}" for text, (rows, cols), area in found]
    return f"floats in the smallest group found: {'; '.join(parts)}" if 0 < len(parts) <= 4 else None
