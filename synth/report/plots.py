"""Pictures of comparisons: ratios, what groups and blocks save, area against clock."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from hbfp import files  # noqa: E402

from ..compare.clocks import Point
from ..compare.comparison import Comparison
from ..compare.design_space import fills_rows, is_plain, varies_only
from ..compare.published import published_ratios
from .labels import label_ends, label_points

#: Published ratios that are drawn: key of :func:`synth.compare.published.published_ratios`, label, dash.
PUBLISHED = (("element, BF16 sums", "Accuracy Boosters v3, element of a 16 x 16 tile, converters not counted", "--"),
             ("dot product of 128, converters counted", "Accuracy Boosters v1, dot product of 128", ":"))


def new_figure(width: float = 7.5, height: float = 4.2) -> tuple[plt.Figure, plt.Axes]:
    """A figure with one pair of axes, in inches."""
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _mantissa(comparison):
    return comparison.report.design.format.mantissa


def commonest_side(comparisons: Sequence[Comparison]) -> int:
    """The array that pictures of one array show: 32 x 32, or the commonest."""
    rows = [each.report.design.rows for each in comparisons]
    return 32 if 32 in rows else max(sorted(set(rows)), key=rows.count)


def _sides(axes, sides):
    """A logarithmic axis of array sides."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(sides[0] / 1.5, sides[-1] * 1.5)
    axes.set_xticks(sides, map(str, sides))
    axes.minorticks_off()
    axes.set_xlabel("array side, elements")


def _plain_scale(axis, ticks):
    """A logarithmic axis whose ticks are the numbers given, as far as they are in view."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    ticks = [tick for tick in ticks if low <= tick <= high]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_tick_params(which="minor", length=0, labelsize=0)
    axis.set_minor_formatter("")


def _by_side(comparisons, width, against):
    """Array side and area ratio of the smallest core of a baseline to that of one width."""
    return sorted((each.report.design.rows, each.smallest_ratios[against]["core"]) for each in comparisons
                  if _mantissa(each) == width)


def ratio_plot(comparisons: Sequence[Comparison]) -> plt.Figure | None:
    """Ratio to FP32 against array side, a line per mantissa, published figures as dashes.

    Default designs, and thinner those whose blocks are as long as the array.
    """
    every = [each for each in comparisons if "fp32" in each.ratios]
    comparisons = [each for each in every if is_plain(each.report.design)]
    if not comparisons:
        return None
    filled = [each for each in every if fills_rows(each.report.design)]
    figure, axes = new_figure(height=5.6)
    ends = []
    for n, width in enumerate(sorted({_mantissa(each) for each in comparisons})):
        points = _by_side(comparisons, width, "fp32")
        axes.plot(*zip(*points, strict=True), marker="o", color=f"C{n}")
        ends.append((*points[-1], f"HBFP{width}", f"C{n}"))
        if len(found := _by_side(filled, width, "fp32")) > 1:
            axes.plot(*zip(*found, strict=True), marker="^", markersize=4, linewidth=0.8, color=f"C{n}")
        if ratios := published_ratios(width):
            for key, _, dash in PUBLISHED:
                axes.axhline(ratios[key], color=f"C{n}", linestyle=dash, linewidth=1)
                axes.text(0.005, ratios[key], f"HBFP{width}: {ratios[key]:.2f}", color=f"C{n}", fontsize=6.5,
                          va="bottom", transform=axes.get_yaxis_transform())
    axes.plot([], [], color="black", marker="o", label="whole cores, blocks of at most 32")
    for _, label, dash in PUBLISHED:
        axes.plot([], [], color="black", linestyle=dash, linewidth=1, label=f"published: {label}")
    if len({each.report.design.rows for each in filled}) > 1:
        axes.plot([], [], color="black", marker="^", markersize=4, linewidth=0.8, label="blocks as long as the array")
    _sides(axes, sorted({each.report.design.rows for each in comparisons}))
    axes.set_ylabel("area of smallest lean FP32 core / area of core")
    _plain_scale(axes.yaxis, (4, 5, 6, 8, 10, 15, 20, 30, 40, 50))
    figure.legend(fontsize=7, loc="outside upper center")
    label_ends(axes, ends)
    return figure


def integer_plot(comparisons: Sequence[Comparison]) -> plt.Figure | None:
    """What the format costs over integers of the same width, against array side; None without that baseline."""
    comparisons = [each for each in comparisons if is_plain(each.report.design) and "int" in each.ratios]
    if not comparisons:
        return None
    figure, axes = new_figure()
    ends = []
    for n, width in enumerate(sorted({_mantissa(each) for each in comparisons})):
        found = [(side, 1 / ratio) for side, ratio in _by_side(comparisons, width, "int")]
        axes.plot(*zip(*found, strict=True), marker="o", color=f"C{n}")
        ends.append((*found[-1], f"HBFP{width}", f"C{n}"))
    _sides(axes, sorted({each.report.design.rows for each in comparisons}))
    axes.set_ylabel("area of core / area of integer core")
    axes.axhline(1, color="black", linewidth=0.8)
    label_ends(axes, ends)
    return figure


def _varied(comparisons, name, label):
    """Default designs of one array but for one value, by mantissa and that value's label; None if it never varies."""
    found = {}
    side = commonest_side(comparisons)
    for each in comparisons:
        design = each.report.design
        if design.rows == side and varies_only(design, name):
            found.setdefault(_mantissa(each), {})[label(design)] = each
    return found if any(len(each) > 1 for each in found.values()) else None


def group_plot(comparisons: Sequence[Comparison]) -> plt.Figure | None:
    """Area per MAC against the elements of a group, a line per mantissa; None if only one group was measured."""
    return _varied_plot(comparisons, "group", lambda design: "{} x {}".format(*design.group),
                        lambda design: design.group[0] * design.group[1], "group, rows x columns")


def block_plot(comparisons: Sequence[Comparison]) -> plt.Figure | None:
    """Area per MAC against the block, a line per mantissa; None if only one block was measured."""
    return _varied_plot(comparisons, "block", lambda design: "{} x {}".format(*design.format.block),
                        lambda design: (design.format.block[0] > 1, design.format.block[1]),
                        "block: 1 x B along K, or a square tile")


def _varied_plot(comparisons, name, label, order, text):
    found = _varied(comparisons, name, label)
    if not found:
        return None
    figure, axes = new_figure()
    designs = {key: each.report.design for by_label in found.values() for key, each in by_label.items()}
    places = {key: n for n, key in enumerate(sorted(designs, key=lambda key: order(designs[key])))}
    ends = []
    for n, (width, by_label) in enumerate(sorted(found.items())):
        if len(by_label) > 1:
            points = sorted((places[key], each.report.scopes()["core"]) for key, each in by_label.items())
            axes.plot(*zip(*points, strict=True), marker="o", color=f"C{n}")
            ends.append((*points[-1], f"HBFP{width}", f"C{n}"))
    axes.set_xticks(list(places.values()), list(places))
    axes.set_xlabel(text)
    axes.set_ylabel("core, NAND2-equivalents per MAC")
    axes.set_ylim(bottom=0)
    label_ends(axes, ends)
    return figure


def pareto_plot(points: Sequence[Point]) -> plt.Figure:
    """Area against clock, a line per kind of number: groups and pipelines that no other of its kind beats.

    Left the clock of whole cores, right that of their elements alone.
    """
    figure, panels = plt.subplots(1, 2, figsize=(10, 5.6), sharey=True, layout="constrained")
    kinds: dict[str, list[Point]] = {}
    for point in points:
        kinds.setdefault(point.kind, []).append(point)
    whats = ("core", "array")
    fronts = {what: {name: _front(found, what) for name, found in kinds.items()} for what in whats}
    for axes, what, title in zip(panels, whats, ("whole core", "elements alone"), strict=True):
        for n, (name, front) in enumerate(fronts[what].items()):
            _draw_front(axes, kinds[name], front, what, f"C{n}")
        periods = [point.period(what) for front in fronts[what].values() for point in front]
        axes.set_xlim(0.8 * min(periods), 1.4 * max(periods))
        axes.set_title(title, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        _plain_scale(axes.xaxis, (2, 3, 5, 10, 15, 20, 30, 50, 100, 200, 500))
        axes.set_xlabel(f"shortest clock period, ns (OpenSTA, recipe {points[0].report.recipe}, no wires)", fontsize=8)
    _plain_scale(panels[0].yaxis, (100, 200, 300, 500, 1000, 2000, 3000, 5000))
    panels[0].set_ylabel("core, NAND2-equivalents per MAC")
    for axes, what in zip(panels, whats, strict=True):
        names: list[tuple[float, float, str, dict[str, str]]] = []
        marks: list[tuple[float, float, str, dict[str, str]]] = []
        for n, (name, front) in enumerate(fronts[what].items()):
            names.append((front[0].period(what), front[0].area, name, {"color": f"C{n}", "weight": "bold"}))
            marks += [(point.period(what), point.area,
                        f"+{point.pipeline}" if point.pipeline else "{}x{}".format(*point.group), {})
                       for point in front]
        label_points(axes, names + marks)
    return figure


def _front(points, what):
    """The points that none of a kind of number beats in both area and clock, the quickest first."""
    front = [point for point in points if not any(
        other.area < point.area and other.period(what) <= point.period(what) for other in points)]
    return sorted(front, key=lambda point: point.period(what))


def _draw_front(axes, points, front, what, colour):
    """All points of a kind of number, and the line of its front."""
    axes.plot([point.period(what) for point in points], [point.area for point in points], linestyle="", marker="o",
              markersize=3, color=colour, alpha=0.4)
    axes.step([point.period(what) for point in front], [point.area for point in front], where="post", marker="o",
              markersize=4, color=colour)


def save(figure: plt.Figure, path: Path) -> Path:
    """Write a PNG; the same figure gives the same bytes."""
    with files.replacing(path) as temporary:
        figure.savefig(temporary, dpi=120, metadata={"Software": None})
    plt.close(figure)
    return path
