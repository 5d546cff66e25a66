"""The picture of a block: its cells by kind, and the wires of each layer."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from hbfp import files

from .measure import FILL, Layout

#: Cells by what their names begin with, and the colour of each group; the rest is grey.
GROUPS = (("registers", ("DFF",), "#0072b2"), ("exclusive or, adders", ("XOR", "XNOR", "FA", "HA"), "#d55e00"),
          ("inverters, buffers", ("INV", "BUF", "CLKBUF"), "#e69f00"))
OTHERS = "other gates", "#b8b8b8"
LAYERS = {"metal1": "#0072b2", "metal2": "#d55e00", "metal3": "#009e73", "metal4": "#cc79a7", "metal5": "#56b4e9",
          "metal6": "#e69f00"}


def draw(path: Path, layout: Layout, title: str) -> None:
    """Write the picture as PNG: cells on the left, wires over the same ground on the right."""
    made = Figure((12.6, 5.6), layout="constrained")
    FigureCanvasAgg(made)
    left, right = made.subplots(1, 2)
    _cells(left, layout)
    _wires(right, layout)
    for axes in (left, right):
        (x0, y0), (x1, y1) = layout.block.corners
        axes.set(xlim=(x0, x1), ylim=(y0, y1), aspect="equal", xlabel="um")
        legend = axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4, fontsize=8, frameon=False)
        for line in legend.get_lines():
            line.set_linewidth(2)
    made.suptitle(title, fontsize=10)
    with files.replacing(path) as temporary:
        made.savefig(temporary, dpi=120, format="png")


def _cells(axes, layout):
    drawn: dict[str, tuple[str, list]] = {name: (colour, []) for name, colour in (
        *((name, colour) for name, _, colour in GROUPS), OTHERS)}
    for kind, x, y in layout.block.cells.values():
        if kind != FILL:
            width, height = layout.technology.cells[kind]
            name = next((name for name, starts, _ in GROUPS if kind.startswith(starts)), OTHERS[0])
            drawn[name][1].append([(x, y), (x + width, y), (x + width, y + height), (x, y + height)])
    for name, (colour, boxes) in drawn.items():
        axes.add_collection(PolyCollection(boxes, facecolor=colour, edgecolor="white", linewidth=0.2,
                                           label=f"{name} ({len(boxes):,})"))
    axes.set_title("Cells", fontsize=9, loc="left")


def _wires(axes, layout):
    lines: dict[str, list] = {}
    for net in layout.block.nets.values():
        for wire in net.wires:
            lines.setdefault(wire.layer, []).append((wire.begin, wire.end))
    for layer in sorted(lines):
        axes.add_collection(LineCollection(lines[layer], colors=LAYERS.get(layer, "#000000"), linewidth=0.35,
                                           label=layer))
    axes.set_title("Wires", fontsize=9, loc="left")
