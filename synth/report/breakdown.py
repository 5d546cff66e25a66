"""Pictures of where the area goes: bars by component, and a floor plan."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..compare.baselines import BASELINES
from ..compare.comparison import Comparison
from ..compare.design_space import is_plain
from ..measure.area import BESIDE, COMPONENTS, Report
from .labels import spread
from .plots import commonest_side, new_figure

#: One colour per component, in the order of the breakdown; readable with colour-blind eyes (Okabe and Ito).
COLOURS = dict(zip(COMPONENTS, ("#0072b2", "#56b4e9", "#f0e442", "#d55e00", "#009e73", "#999999", "#e0e0e0"),
                   strict=True))


def breakdown_plot(comparisons: Sequence[Comparison]) -> Figure:
    """NAND2-equivalents per MAC by component, a bar per design and one per distinct baseline.

    Of many designs, the default ones with the commonest array are shown.
    """
    plain = [comparison for comparison in comparisons if is_plain(comparison.report.design)]
    if len(comparisons) > 8 and plain:
        side = commonest_side(plain)
        comparisons = [comparison for comparison in plain if comparison.report.design.rows == side]
    found: dict[str, Report] = {}
    for comparison in comparisons:
        for report in (comparison.report, *(comparison.baselines | comparison.smallest).values()):
            found.setdefault(report.name, report)
    reports = _by_kind(list(found.values()))
    figure, axes = new_figure(height=0.6 + 0.32 * len(reports))
    names = list(reports)[::-1]
    left = [0.0] * len(names)
    for name in COMPONENTS:
        if name in BESIDE:
            continue
        widths = [reports[each].components[name].area / reports[each].macs for each in names]
        axes.barh(names, widths, left=left, color=COLOURS[name], label=name, edgecolor="white", linewidth=0.5)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    integers = [total for each, total in zip(names, left, strict=True)
                if reports[each].design.arithmetic in ("hbfp", "int")]
    limit = 1.25 * max(integers or left)
    axes.set_xlim(0, limit)
    for n, total in enumerate(left):
        off = total > limit
        axes.text(min(total, limit) * (0.99 if off else 1), n, f"{total:,.0f} \u2192 " if off else f" {total:,.0f}",
                  ha="right" if off else "left", va="center", fontsize=7, color="white" if off else "black")
    axes.set_xlabel("NAND2-equivalents per MAC without memories and side unit; floats run off the picture", fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    figure.legend(fontsize=7, loc="outside upper center", ncols=7)
    return figure


def _by_kind(reports):
    """Kind of number -> report, floats last; a report whose kind others have, too, goes by its own name."""
    def kind(report):
        mantissa = report.design.format.mantissa
        return (BASELINES | {"hbfp": f"HBFP{mantissa}", "int": f"int{mantissa}"})[report.design.arithmetic]
    kinds = [kind(report) for report in reports]
    named = {name if kinds.count(name) == 1 else report.name: report
             for name, report in zip(kinds, reports, strict=True)}
    return dict(sorted(named.items(), key=lambda item: item[1].design.arithmetic not in ("hbfp", "int")))


def _squares(shares, x, y, width, height):
    """Cut a rectangle into parts of the given areas, always along its longer side."""
    if len(shares) == 1:
        yield shares[0][0], (x, y, width, height)
        return
    (name, area), rest = shares[0], shares[1:]
    part = area / sum(value for _, value in shares)
    if width >= height:
        yield name, (x, y, width * part, height)
        yield from _squares(rest, x + width * part, y, width * (1 - part), height)
    else:
        yield name, (x, y, width, height * part)
        yield from _squares(rest, x, y + height * part, width, height * (1 - part))


def floor_plan(report: Report) -> Figure:
    """Where the area of one design goes: rectangles to scale, the side unit included."""
    figure, axes = new_figure(7, 6.4)
    shares = sorted(((name, fig.area) for name, fig in report.components.items() if fig.area), key=lambda s: -s[1])
    small = []
    for name, (x, y, width, height) in _squares(shares, 0, 0, 1, 1):
        axes.add_patch(Rectangle((x, y), width, height, facecolor=COLOURS[name], edgecolor="black", linewidth=0.8))
        middle, text = (x + width / 2, y + height / 2), f"{dict(shares)[name] / report.whole.area:.1%}"
        if width > 0.2:
            axes.text(*middle, f"{name}\n{text}", ha="center", va="center", fontsize=9)
        else:
            small.append((middle, f"{name}, {text}"))
    small.reverse()    # the smallest lies outermost
    depths = spread([-middle[1] for middle, _ in small], 0.045)
    for (middle, text), depth in zip(small, depths, strict=True):
        axes.annotate(text, middle, (1.02, -depth), va="center", fontsize=9, annotation_clip=False,
                      arrowprops={"arrowstyle": "-", "linewidth": 0.6})
    axes.set(xlim=(0, 1.25), ylim=(0, 1), aspect="equal", title=f"{report.name}\nrectangles to scale, not a layout")
    axes.title.set_fontsize(8)
    axes.axis("off")
    return figure
