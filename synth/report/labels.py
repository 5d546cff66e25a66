"""Labels beside what they name, none on another."""

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

#: Where a point's label may stand, in points from it, with its alignment; the first free place is taken.
PLACES = ((3, 4, "left", "bottom"), (3, -4, "left", "top"), (-3, 4, "right", "bottom"), (-3, -4, "right", "top"),
          (0, 12, "center", "bottom"), (0, -12, "center", "top"), (14, 12, "left", "bottom"), (14, -12, "left", "top"))


def spread(places: Iterable[float], gap: float) -> list[float]:
    """Places moved up until each is at least ``gap`` above the next lower one; in the order given."""
    moved, last = list(places), None
    for n in sorted(range(len(moved)), key=moved.__getitem__):
        if last is not None:
            moved[n] = max(moved[n], last + gap)
        last = moved[n]
    return moved


def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]], size: float = 8) -> None:
    """Write texts to the right of ``ends``: x, y, text, colour."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()    # settles the scales
    at = [axes.transData.transform((x, y))[1] for x, y, _, _ in ends]
    for (x, y, text, colour), old, new in zip(ends, at, spread(at, 1.25 * size * figure.dpi / 72), strict=True):
        axes.annotate(text, (x, y), xytext=(7, (new - old) * 72 / figure.dpi), textcoords="offset points",
                      va="center", fontsize=size, color=colour,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})    # lines may pass behind


def label_points(axes: Axes, points: Sequence[tuple[float, float, str, dict[str, Any]]], size: float = 6) -> None:
    """Write texts beside ``points``: x, y, text, keywords of the text; one that has no free place is left out."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    marks = [axes.transData.transform(point[:2]) for point in points]
    taken = [Bbox.from_extents(x - 3, y - 3, x + 3, y + 3) for x, y in marks]
    for x, y, text, style in points:
        for dx, dy, across, up in PLACES:
            note = axes.annotate(text, (x, y), xytext=(dx, dy), textcoords="offset points", ha=across, va=up,
                                 fontsize=size, **style)
            box = note.get_window_extent()
            if axes.bbox.fully_containsx(box.x0) and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            note.remove()
