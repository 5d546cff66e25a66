"""Pictures of studies: ratios, breakdowns, a floor plan."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

from .area import BESIDE, COMPONENTS  # noqa: E402
from .plan import default_values, is_plain  # noqa: E402
from .study import BASELINES  # noqa: E402

#: One colour per component, in the order of the breakdown; readable with colour-blind eyes (Okabe and Ito).
COLOURS = dict(zip(COMPONENTS, ("#0072b2", "#56b4e9", "#f0e442", "#d55e00", "#009e73", "#999999", "#e0e0e0"),
                   strict=True))
#: Published ratios to FP32: (label, mantissa, ratio). Sources: docs/design/07-area.md.
PUBLISHED = (("Accuracy Boosters v3, element of a 16 x 16 tile, converters not counted", {4: 21.32, 6: 12.67, 8: 8.28}),
             ("Accuracy Boosters v1, dot product of 128", {4: 16.98, 6: 10.53, 8: 7.10}))


def _figure(width=7.5, height=4.2):
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _mantissa(study):
    return study.report.design["format"]["mantissa"]


def _first_recipe(studies):
    """Those studies that share recipe and library with the first: a picture mixes none."""
    first = studies[0].report
    return [study for study in studies if (study.report.recipe, study.report.library) == (first.recipe, first.library)]


def _sides(axes, sides):
    """A logarithmic axis of array sides."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(sides[0] / 1.5, sides[-1] * 1.5)
    axes.set_xticks(sides, map(str, sides))
    axes.minorticks_off()
    axes.set_xlabel("array side, elements")


def ratio_plot(studies):
    """Ratio to FP32 against array side, a line per mantissa, published figures as dashes; default designs alone."""
    studies = [study for study in _first_recipe(studies) if is_plain(study.report.design) and "fp32" in study.ratios]
    if not studies:
        return None
    figure, axes = _figure(height=5.2)
    for n, width in enumerate(sorted({_mantissa(study) for study in studies})):
        found = sorted((study.report.design["rows"], study.ratios["fp32"]["core"]) for study in studies
                       if _mantissa(study) == width)
        line, = axes.plot(*zip(*found, strict=True), marker="o", color=f"C{n}", label=f"HBFP{width}, whole core")
        for (_, ratios), dash in zip(PUBLISHED, ("--", ":"), strict=True):
            if width in ratios:
                axes.axhline(ratios[width], color=line.get_color(), linestyle=dash, linewidth=1)
    for (label, _), dash in zip(PUBLISHED, ("--", ":"), strict=True):
        axes.plot([], [], color="black", linestyle=dash, linewidth=1, label=f"published: {label}")
    _sides(axes, sorted({study.report.design["rows"] for study in studies}))
    axes.set_ylabel("area of lean FP32 core / area of core")
    axes.set_ylim(bottom=0)
    figure.legend(fontsize=7, loc="outside upper center", ncols=2)
    return figure


def integer_plot(studies):
    """What the format costs over integers of the same width, against array side; None without that baseline."""
    studies = [study for study in _first_recipe(studies) if is_plain(study.report.design) and "int" in study.ratios]
    if not studies:
        return None
    figure, axes = _figure()
    for n, width in enumerate(sorted({_mantissa(study) for study in studies})):
        found = sorted((study.report.design["rows"], 1 / study.ratios["int"]["core"]) for study in studies
                       if _mantissa(study) == width)
        axes.plot(*zip(*found, strict=True), marker="o", color=f"C{n}", label=f"HBFP{width}")
    _sides(axes, sorted({study.report.design["rows"] for study in studies}))
    axes.set_ylabel("area of core / area of integer core")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.legend(fontsize=7)
    return figure


def breakdown_plot(studies):
    """NAND2-equivalents per MAC by component, a bar per design and one per distinct baseline.

    Of many designs, the default ones with the commonest array are shown.
    """
    studies = _first_recipe(studies)
    plain = [study for study in studies if is_plain(study.report.design)]
    if len(studies) > 8 and plain:
        rows = [study.report.design["rows"] for study in plain]
        side = 32 if 32 in rows else max(set(rows), key=rows.count)
        studies = [study for study in plain if study.report.design["rows"] == side]
    reports = {}
    for study in studies:
        for report in (study.report, *study.baselines.values()):
            reports.setdefault(report.name, report)
    figure, axes = _figure(height=0.6 + 0.42 * len(reports))
    names = list(reports)[::-1]
    left = [0.0] * len(names)
    for name in COMPONENTS:
        if name in BESIDE:
            continue
        widths = [reports[each].components[name].area / reports[each].macs for each in names]
        axes.barh(names, widths, left=left, color=COLOURS[name], label=name, edgecolor="white", linewidth=0.5)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    integers = [total for each, total in zip(names, left, strict=True)
                if reports[each].design["arithmetic"] in ("hbfp", "int")]
    limit = 1.25 * max(integers or left)
    axes.set_xlim(0, limit)
    for n, total in enumerate(left):
        off = total > limit
        axes.text(min(total, limit) * (0.99 if off else 1), n, f"{total:,.0f} \u2192 " if off else f" {total:,.0f}",
                  ha="right" if off else "left", va="center", fontsize=7, color="white" if off else "black")
    axes.set_xlabel("NAND2-equivalents per MAC without memories and side unit; floats run off the picture", fontsize=8)
    axes.tick_params(axis="y", labelsize=6)
    figure.legend(fontsize=7, loc="outside upper center", ncols=7)
    return figure


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


def floor_plan(report):
    """Where the area of one design goes: rectangles to scale, the side unit included."""
    figure, axes = plt.subplots(figsize=(6, 6), layout="constrained")
    shares = sorted(((name, fig.area) for name, fig in report.components.items() if fig.area), key=lambda s: -s[1])
    for name, (x, y, width, height) in _squares(shares, 0, 0, 1, 1):
        axes.add_patch(Rectangle((x, y), width, height, facecolor=COLOURS[name], edgecolor="black", linewidth=0.8))
        area = dict(shares)[name]
        if width * height > 0.01:
            axes.text(x + width / 2, y + height / 2, f"{name}\n{area / report.whole.area:.1%}", ha="center",
                      va="center", fontsize=9, rotation=0 if width > 0.15 else 90)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=f"{report.name}\nrectangles to scale, not a layout")
    axes.title.set_fontsize(8)
    axes.axis("off")
    return figure


def _varied(studies, name, label):
    """Default designs but for one value, by mantissa and that value's label; None if it never varies."""
    found = {}
    for study in _first_recipe(studies):
        design = study.report.design
        default = default_values(design)
        other = {key for key in design if design[key] != default[key]}
        if other <= ({"format"} if name == "block" else {name}) \
                and {**design["format"], "block": 0} == {**default["format"], "block": 0}:
            found.setdefault(_mantissa(study), {})[label(design)] = study
    return found if any(len(each) > 1 for each in found.values()) else None


def group_plot(studies):
    """Area per MAC against the elements of a group, a line per mantissa; None if only one group was measured."""
    return _varied_plot(studies, "group", lambda design: "{} x {}".format(*design["group"]),
                        lambda design: design["group"][0] * design["group"][1], "group, rows x columns")


def block_plot(studies):
    """Area per MAC against the block, likewise."""
    return _varied_plot(studies, "block", lambda design: "{} x {}".format(*design["format"]["block"]),
                        lambda design: design["format"]["block"][1] * 1000 + design["format"]["block"][0],
                        "block: 1 x B along K, or a square tile")


def _varied_plot(studies, name, label, order, text):
    found = _varied(studies, name, label)
    if not found:
        return None
    figure, axes = _figure()
    for n, (width, by_label) in enumerate(sorted(found.items())):
        if len(by_label) > 1:
            points = sorted(by_label.items(), key=lambda item: order(item[1].report.design))
            axes.plot([key for key, _ in points], [study.report.scopes()["core"] for _, study in points], marker="o",
                      color=f"C{n}", label=f"HBFP{width}")
    axes.set_xlabel(text)
    axes.set_ylabel("core, NAND2-equivalents per MAC")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    return figure


def pareto_plot(points):
    """Area against clock, a line per kind of number: groups and pipelines that no other of its kind beats."""
    figure, axes = _figure(height=5)
    kinds = {}
    for point in points:
        design = point.report.design
        name = f"HBFP{design['format']['mantissa']}" if point.arithmetic == "hbfp" else BASELINES[point.arithmetic]
        kinds.setdefault(name, []).append(point)
    for n, (name, found) in enumerate(kinds.items()):
        axes.plot([point.period("array") for point in found], [point.area for point in found], linestyle="",
                  marker="o", markersize=3, color=f"C{n}", alpha=0.4)
        front = [point for point in found if not any(
            other.area < point.area and other.period("array") <= point.period("array") for other in found)]
        front.sort(key=lambda point: point.period("array"))
        axes.step([point.period("array") for point in front], [point.area for point in front], where="post",
                  marker="o", color=f"C{n}", label=name)
        for point in front:
            text = f"{point.pipeline} registers" if point.pipeline else "{} x {}".format(*point.group)
            axes.annotate(text, (point.period("array"), point.area), xytext=(3, 4), textcoords="offset points",
                          fontsize=6)
    axes.set(xscale="log", yscale="log", xlabel="shortest clock period of the array, ns (OpenSTA, no wires or buffers)",
             ylabel="core, NAND2-equivalents per MAC")
    axes.legend(fontsize=7)
    return figure


def save(figure, path):
    """Write a PNG; the same figure gives the same bytes."""
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)
    return path
