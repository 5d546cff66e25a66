"""A page of its own with the tables and pictures of a sweep."""

import base64
from html import escape

from . import plots
from .report import NOT_COUNTED
from .study import BASELINES, SCOPES

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0 }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left }
img { max-width: 100% } figure { margin: 1.5rem 0 } figcaption { color: #555 }
"""


def _table(head, rows):
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def _picture(path, caption):
    data = base64.b64encode(path.read_bytes()).decode()
    return (f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>")


def write_page(folder, studies):
    """Write ``area.html`` and its pictures; return their paths."""
    made = [(plots.ratio_plot(studies), "ratio.png", "FP32 area over HBFP area, everything but memories and side unit"),
            (plots.breakdown_plot(studies), "breakdown.png", "Where the area goes, per multiply-accumulate"),
            (plots.floor_plan(studies[-1].report), "floorplan.png", "Area of the last design, to scale"),
            (plots.group_plot(studies), "group.png", "What larger groups save")]
    pictures = [(plots.save(figure, folder / name), caption) for figure, name, caption in made if figure]
    names = list(studies[0].baselines)
    head = ["design", "recipe", *(f"{scope}, NAND2" for scope in SCOPES), *(f"{BASELINES[name]} /" for name in names)]
    rows = []
    for study in studies:
        scopes = study.report.scopes()
        rows.append([study.report.name, study.report.recipe, *(f"{scopes[scope]:,.1f}" for scope in SCOPES),
                     *(f"{study.ratios[name]['core']:.2f}" for name in names)])
    report = studies[0].report
    library = "generic gates"
    if report.library:
        library = f"{report.library['name']} (sha256 {report.library['sha256'][:12]})"
    tools = ", ".join(f"{name} {version}" for name, version in report.tools.items())
    basis = (f"NAND2-equivalents per multiply-accumulate; library {library}; {tools}. Not counted: {NOT_COUNTED}. "
             "Ratios are of whole cores without side units; baselines are of the same generator, with the same shape, "
             "dataflow and group.")
    text = "\n".join([
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Area of HBFP cores</title><style>{_STYLE}</style>",
        "<h1>Area of HBFP cores, relative to FP32</h1>",
        f"<p>{escape(basis)}</p>",
        _table(head, rows), *(_picture(path, caption) for path, caption in pictures), "</html>", ""])
    path = folder / "area.html"
    path.write_text(text)
    return [path, *(picture for picture, _ in pictures)]
