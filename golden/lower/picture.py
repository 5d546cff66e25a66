"""The picture of a network's graph: a box for each node with instructions, and lines from what it takes."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from hbfp import files

from .became import HOST, Became

#: Inches from a box to the next, across and down, and of a box.
ACROSS, DOWN, WIDTH, HEIGHT = 2.6, 0.75, 2.4, 0.45
#: Twice the inches by which a line goes around boxes.
BULGE = 0.15
#: Dots of an inch, and most dots of a side.
DOTS, MOST = 100, 30_000
#: What a node has -> the colour of its box; readable with colour-blind eyes (Okabe and Ito).
COLOURS = {"multiply": "#56b4e9", "vector": "#e69f00", "store": "#dddddd", HOST: "#80c8ad"}


def draw(path: Path, title: str, inputs: Iterable[str], nodes: Sequence[Became]) -> None:
    """Write the picture, as PNG or SVG by the file's name: products blue, vector programs orange, copies grey, the host
    green.

    Views and nodes that go with others have no box: lines go to what they are views of, and from what they go with.
    """
    seen = {each.node: each.owner or (each.operands[0] if each.view and each.first == each.stop and each.operands
                                      else "") for each in nodes}
    boxes: dict[str, list[str]] = {name: [name] for name in inputs}
    taken: dict[str, list[str]] = {name: [] for name in boxes}
    colours = dict.fromkeys(boxes, "white")
    for each in nodes:
        name = _end(each.node, seen)
        if name == each.node:
            boxes[name], taken[name] = [each.node, each.text.partition(";")[0]], []
            colours[name] = next((colour for kind, colour in COLOURS.items() if kind in (*each.counts, each.operation)),
                                 "white")
        elif each.owner and each.operation != "getitem":
            boxes[name][0] += f", {each.node}"
        if name in taken:
            taken[name] += [end for operand in each.operands if (end := _end(operand, seen)) in boxes and end != name]
    places = _places(taken)
    width = max((x for x, _ in places.values()), default=0) + 1
    height = max((y for _, y in places.values()), default=0) + 1
    made = Figure((ACROSS * max(width, 2), DOWN * height + 0.4))
    FigureCanvasAgg(made)
    axes = made.add_axes((0, 0, 1, 1))
    axes.set_xlim(-ACROSS / 2, ACROSS * (max(width, 2) - 0.5))
    axes.set_ylim(-DOWN * (height - 0.5), DOWN / 2 + 0.4)
    axes.axis("off")
    axes.text(-ACROSS / 2 + 0.1, DOWN / 2 + 0.15, title.replace(" on ", "\non ", 1), fontsize=7)
    for name, froms in taken.items():
        x, y = ACROSS * places[name][0], -DOWN * places[name][1]
        for source in dict.fromkeys(froms):
            a, b = ACROSS * places[source][0], -DOWN * places[source][1]
            past = a == x and b - y > 1.5 * DOWN           # boxes in between, which the line goes around
            start, end = ((x + WIDTH / 2, b), (x + WIDTH / 2, y)) if past else ((a, b - HEIGHT / 2),
                                                                                (x, y + HEIGHT / 2))
            axes.annotate("", end, start, zorder=0, arrowprops={
                "arrowstyle": "->", "color": "#777777", "lw": 0.8, "shrinkA": 0, "shrinkB": 0,
                "connectionstyle": f"arc3,rad={-BULGE / (b - y) if past else 0}"})
        axes.add_patch(FancyBboxPatch((x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, "round,pad=0,rounding_size=0.06",
                                      facecolor=colours[name], edgecolor="#444444", linewidth=0.8))
        text = "\n".join(line if len(line) < 40 else f"{line[:37]}..." for line in boxes[name] if line)
        axes.text(x, y, text, ha="center", va="center", fontsize=7)
    dots = min(DOTS, MOST / max(made.get_size_inches()))
    with files.replacing(path) as temporary, matplotlib.rc_context({"svg.hashsalt": "hbfp", "svg.fonttype": "none"}):
        kind = path.suffix[1:]
        made.savefig(temporary, dpi=dots, format=kind, metadata={"Date": None} if kind == "svg" else None)


def _end(name: str, seen: Mapping[str, str]) -> str:
    """The node whose box a node's result comes from."""
    while seen.get(name):
        name = seen[name]
    return name


def _places(taken: Mapping[str, Sequence[str]]) -> dict[str, tuple[float, int]]:
    """Column and row of each box: below all that it takes, and as near below the first of these as there is room."""
    places: dict[str, tuple[float, int]] = {}
    used: dict[int, set[int]] = {}
    for name, froms in taken.items():
        row = max((places[each][1] for each in froms if each in places), default=-1) + 1
        column = int(places[froms[0]][0]) if froms and froms[0] in places else 0
        while column in used.setdefault(row, set()):
            column += 1
        used[row].add(column)
        places[name] = column, row
    return places
