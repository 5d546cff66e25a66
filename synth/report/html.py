"""A page of its own with the tables and pictures of a sweep."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from hbfp import files

from ..compare.baselines import BASELINES
from ..compare.clocks import Point
from ..compare.comparison import SCOPES, Comparison
from ..compare.design_space import is_plain
from ..compare.published import published_ratios
from ..measure.memories import label
from . import breakdown, plots
from .tables import NOT_COUNTED, tools_text

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0 }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left; white-space: nowrap }
div.wide { overflow-x: auto }
img { max-width: 100% } figure { margin: 1.5rem 0 } figcaption { color: #555 }
"""


def _table(head, rows):
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
    return f"<div class=wide><table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table></div>"


def _picture(path, caption):
    data = base64.b64encode(path.read_bytes()).decode()
    return (f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>")


#: Picture -> file name and caption; those that a sweep cannot fill are left out.
_PICTURES = (
    (plots.ratio_plot, "ratio.png", "Smallest lean FP32 core over HBFP core: everything but memories and side units"),
    (plots.integer_plot, "integer.png", "What the format costs over integers of the same width"),
    (breakdown.breakdown_plot, "breakdown.png", "Where the area goes, per multiply-accumulate"),
    (lambda every: breakdown.floor_plan(_headline(every).report), "floorplan.png", "Area of one core, to scale"),
    (plots.group_plot, "group.png", "What larger groups save"),
    (plots.block_plot, "block.png", "What longer blocks save"),
)


def _headline(comparisons):
    """The default 8-bit core, or the last default one, or the last of what there is."""
    plain = [each for each in comparisons if is_plain(each.report.design) and each.report.design.rows == 32]
    return next((each for each in plain if each.report.design.format.mantissa == 8), (plain or comparisons)[-1])


def _matrix(comparisons):
    """Ratio to FP32 by width and array, for default designs; None if there is one array alone."""
    plain = [each for each in comparisons if is_plain(each.report.design) and "fp32" in each.ratios]
    found = {(each.report.design.format.mantissa, each.report.design.rows):
             each.smallest_ratios["fp32"]["core"] for each in plain}
    widths, sides = (sorted({key[n] for key in found}) for n in range(2))
    if len(sides) < 2:
        return None
    rows = [[f"HBFP{width}", *(f"{found[width, side]:.2f}" if (width, side) in found else "" for side in sides)]
            for width in widths]
    return _table(["", *(f"{side} x {side}" for side in sides)], rows)


def _published(comparisons):
    """Published ratios beside ours, by width; None if there are none."""
    rows, head = [], ["", "ours, whole core 32 x 32"]
    for each in comparisons:
        width = each.report.design.format.mantissa
        figures = published_ratios(width)
        if figures and is_plain(each.report.design) and each.report.design.rows == 32 and "fp32" in each.ratios:
            head[2:] = [f"published, {name}" for name in figures]
            rows.append([f"HBFP{width}", f"{each.smallest_ratios['fp32']['core']:.2f}",
                         *(f"{value:.2f}" for value in figures.values())])
    return _table(head, rows) if rows else None


def _basis(report):
    """What all figures rest on."""
    library = "generic gates"
    if report.library:
        library = f"{report.library['name']} (sha256 {report.library['sha256'][:12]})"
    return (f"NAND2-equivalents per multiply-accumulate; recipe {report.recipe}, library {library}; "
            f"{tools_text(report.tools)}. Memories: {label(report.bit)}. Not counted: {NOT_COUNTED}. "
            "Ratios are of cores without side units and memories; baselines are of the same generator, with the same "
            "shape and dataflow; floats are those of the group in which they are smallest.")


def write_page(folder: Path, comparisons: Sequence[Comparison], points: Sequence[Point] = ()) -> list[Path]:
    """Write ``area.html`` and its pictures; return their paths.

    Pictures, and all tables but the last, show the first recipe and library alone. ``points`` are those of
    :func:`synth.compare.clocks.pareto`, if there are any.
    """
    basis = comparisons[0].report
    first = [each for each in comparisons if (each.report.recipe, each.report.library) == (basis.recipe, basis.library)]
    pictures = [(plots.save(figure, folder / name), caption) for make, name, caption in _PICTURES
                if (figure := make(first))]
    if points:
        pictures.append((plots.save(plots.pareto_plot(points), folder / "pareto.png"),
                         "Area and clock at 32 x 32: groups of elements (8x4), registers (+1)"))
    names = list(comparisons[0].baselines)
    head = ["design", "recipe", *(f"{scope}, NAND2" for scope in SCOPES), *(f"{BASELINES[name]} /" for name in names),
            *(f"{BASELINES[name]}, same group /" for name in names if name != "int")]
    rows = []
    for each in comparisons:
        scopes = each.report.scopes()
        rows.append([each.report.name, each.report.recipe, *(f"{scopes[scope]:,.1f}" for scope in SCOPES),
                     *(f"{each.smallest_ratios[name]['core']:.2f}" for name in names),
                     *(f"{each.ratios[name]['core']:.2f}" for name in names if name != "int")])
    parts = [("Beside published figures", _published(first)), ("Lean FP32 over HBFP, by array", _matrix(first)),
             ("Pictures", "".join(_picture(path, caption) for path, caption in pictures)),
             ("All designs", _table(head, rows))]
    text = "\n".join([
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Area of HBFP cores</title><style>{_STYLE}</style>",
        "<h1>Area of HBFP cores, relative to FP32</h1>", f"<p>{escape(_basis(basis))}</p>",
        *(f"<h2>{title}</h2>\n{body}" for title, body in parts if body), "</html>", ""])
    path = folder / "area.html"
    files.write(path, text)
    return [path, *(picture for picture, _ in pictures)]
