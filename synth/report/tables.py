"""What was measured as tables on a terminal, and as CSV."""

import csv
import io
from collections.abc import Iterable, Mapping

from rich.box import SIMPLE_HEAD as NARROW
from rich.table import Table

from ..compare import dot_product
from ..compare.baselines import BASELINES
from ..compare.clocks import WHATS, Clocks
from ..compare.comparison import MEMORY_SCOPES, SCOPES, Comparison
from ..measure.area import Report
from ..measure.memories import label

#: What no figure here contains.
NOT_COUNTED = "clock tree, wires, pads"


def number(value: float | None) -> str:
    """An area as tables print it."""
    return "" if value is None else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def tools_text(tools: Mapping[str, str]) -> str:
    """Names and versions of tools, in a line."""
    return ", ".join(f"{name} {version}" for name, version in tools.items())


def breakdown_table(report: Report) -> Table:
    """Components with their share of the core, or of the part that was measured alone."""
    what = "NAND2-equivalents" if report.library else "NAND2-equivalents (transistors / 4)"
    table = Table(title=f"{report.name}, recipe {report.recipe}", title_justify="left",
                  caption=f"{what}; not counted: {NOT_COUNTED}", caption_justify="left")
    table.add_column("component")
    for head in (*(["a MAC"] if report.macs > 1 else []), "all", "share", "flip-flops", "memory bits"):
        table.add_column(head, justify="right", no_wrap=True)

    def row(name, area, *others):
        table.add_row(name, *([number(area / report.macs)] if report.macs > 1 else []), number(area), *others)

    core = report.core
    for name, fig in report.components.items():
        if not fig.cells and not fig.bits:
            continue
        share = "beside" if report.beside(name) else f"{fig.area / core.area:.1%}" if core.area else ""
        row(name, fig.area, share, f"{fig.flipflops:,}", f"{fig.bits:,}" if fig.bits else "")
    table.add_section()
    row(f"{report.unit} without memories", core.area, "", f"{core.flipflops:,}", f"{core.bits:,}")
    scopes = report.scopes()
    if core.bits or report.unit == "core":
        row(f"{report.unit} and memories, {label(report.bit)}", scopes["core and memories"] * report.macs)
    if report.unit == "core":
        row(f"core, side unit and memories, {label(report.bit)}", scopes["everything"] * report.macs)
    return table


def ratio_table(comparison: Comparison) -> Table:
    """Areas of the baselines over that of the design, by scope."""
    table = Table(title=f"Area of the baseline, in the same group, over that of the design, recipe "
                  f"{comparison.report.recipe}", title_justify="left", box=NARROW,
                  caption="last column: the baseline's core, NAND2-equivalents a MAC", caption_justify="left")
    table.add_column("against")
    for scope in (*SCOPES, "NAND2"):
        table.add_column(scope, justify="right", min_width=max(map(len, scope.split())))
    for name, ratios in comparison.ratios.items():
        table.add_row(BASELINES[name], *(f"{ratios[scope]:.2f}" if scope in ratios else "" for scope in SCOPES),
                      number(comparison.baselines[name].scopes()["core"]))
    return table


def timing_table(comparison: Comparison) -> Table:
    """Clock periods by kind of unit, the design first."""
    table = Table(title="Shortest clock period in ns, by OpenSTA", title_justify="left",
                  caption_justify="left", caption="no wires, no clock skew; inputs and outputs registered; core: "
                  "all of it, nothing left out")
    table.add_column("unit")
    for name in comparison.periods:
        table.add_column(name, justify="right")
    for kind in next(iter(comparison.periods.values())):
        table.add_row(kind, *(f"{found[kind]:.2f}" if kind in found else "" for found in comparison.periods.values()))
    return table


def _cells(point, what="core"):
    """Group, registers, period and area of a point."""
    if point is None:
        return ["none", "", "", ""]
    return ["{} x {}".format(*point.group), str(point.pipeline), f"{point.period(what):.1f}", number(point.area)]


def clock_tables(clocks: Clocks) -> list[Table]:
    """Best groups, equal clock, and the other way round."""
    heads = ("group", "registers", "period, ns", "NAND2 a MAC")
    best = clocks.best()
    mine = best[clocks.own.arithmetic]
    table = Table(title="Each core with its own best group, at any clock", title_justify="left")
    table.add_column("core")
    for head in (*heads, "clock set by", f"over {mine.kind}"):
        table.add_column(head, justify="right")
    for point in best.values():
        table.add_row(point.kind, *_cells(point), point.slowest, f"{point.area / mine.area:.2f} x")
    tables = [table]
    for what, scope in zip(WHATS, ("core", "elements alone"), strict=True):
        own = clocks.own
        limit = own.period(what)
        slowest = f", set by its {own.slowest}" if what == "core" else ""
        table = Table(title=f"At the clock of {own.report.name}, {scope}: {limit:.1f} ns{slowest}",
                      title_justify="left", caption="registers: inside each multiply-add; none: no pipeline meets it",
                      caption_justify="left")
        table.add_column("baseline")
        for head in (*heads, "over the design"):
            table.add_column(head, justify="right")
        for name, point in clocks.equal(what).items():
            table.add_row(BASELINES[name], *_cells(point, what), point and f"{point.area / own.area:.2f} x")
        tables.append(table)
        if not clocks.reverse(what):
            continue
        table = Table(title=f"At the clock of each pipelined baseline, {scope}", title_justify="left",
                      caption=f"smallest {mine.kind} core that meets it, of {len(clocks.mine)} groups and pipelines",
                      caption_justify="left")
        table.add_column("baseline")
        for head in (*heads, *(f"{mine.kind}: {head}" for head in (heads[0], *heads[2:])), "ratio"):
            table.add_column(head, justify="right")
        for point, met in clocks.reverse(what):
            group, _, period, area = _cells(met, what)
            table.add_row(point.kind, *_cells(point, what), group, period, area,
                          met and f"{point.area / met.area:.2f} x")
        tables.append(table)
    return tables


def dot_product_table(report: Report, found: Mapping[str, Report]) -> Table:
    """Areas a term, and the baseline's over them."""
    result = Table(title=f"A term of a dot product of {report.macs}", title_justify="left")
    result.add_column("scope")
    result.add_column("NAND2", justify="right")
    for name in found:
        result.add_column(f"{name}, NAND2", justify="right")
        result.add_column(f"{name} / this", justify="right")
    ratios = dot_product.ratios(report, found)
    for scope, area in dot_product.scopes(report).items():
        cells = [text for name, other in found.items() for text in
                 (f"{dot_product.scopes(other)[scope]:,.1f}", f"{ratios[name][scope]:.2f} x")]
        result.add_row(scope, f"{area:,.1f}", *cells)
    return result


def comparison_tables(comparison: Comparison) -> list[Table]:
    """All tables of a comparison but the breakdown."""
    return [ratio_table(comparison), *([timing_table(comparison)] if comparison.periods else []),
            *(clock_tables(comparison.clocks) if comparison.clocks else [])]


def csv_text(comparisons: Iterable[Comparison]) -> str:
    """One row per design and recipe; the columns are stable."""
    out = io.StringIO()
    logic = [scope for scope in SCOPES if scope not in MEMORY_SCOPES]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["name", "arithmetic", "mantissa", "rows", "cols", "block", "group", "pipeline", "share",
                     "accumulate", "recipe", "library", *(f"{scope} nand2" for scope in logic), "um2", "transistors",
                     "cells", "flipflops", "bits", *(f"{name} over core" for name in BASELINES),
                     *(f"smallest {name} over core" for name in BASELINES),
                     *(f"{scope} nand2" for scope in MEMORY_SCOPES),
                     *(f"smallest {name} over {scope}" for scope in MEMORY_SCOPES for name in BASELINES)])
    for comparison in comparisons:
        report, design = comparison.report, comparison.report.design
        fmt, core, scopes = design.format, report.core, report.scopes()
        writer.writerow([report.name, design.arithmetic, fmt.mantissa, design.rows, design.cols,
                         "x".join(map(str, fmt.block)), "x".join(map(str, design.group)), design.pipeline,
                         design.share, design.accumulate, report.recipe,
                         report.library["name"] if report.library else "generic",
                         *(f"{scopes[scope]:.2f}" for scope in logic),
                         "" if core.um2 is None else f"{core.um2:.0f}", core.transistors or "", core.cells,
                         core.flipflops, core.bits,
                         *(f"{ratios[name]['core']:.3f}" if name in ratios else ""
                           for ratios in (comparison.ratios, comparison.smallest_ratios) for name in BASELINES),
                         *(f"{scopes[scope]:.2f}" for scope in MEMORY_SCOPES),
                         *(f"{comparison.smallest_ratios[name][scope]:.3f}" if name in comparison.smallest_ratios
                           else "" for scope in MEMORY_SCOPES for name in BASELINES)])
    return out.getvalue()
