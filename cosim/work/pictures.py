"""Pictures of a run: the digits with their predicted classes, and how busy the array was."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hbfp import files


def _figure(size):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure  # slow to import, and only here

    figure = Figure(figsize=size, dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def digits(path: Path, title: str, images: np.ndarray, classes: np.ndarray, predicted: np.ndarray,
           columns: int = 30) -> Path:
    """Draw all images (count, 64) in a grid, each with its predicted class; wrong ones in red with the true class."""
    count = len(images)
    lines = -(-count // columns)
    cell, tile = 12, 8
    canvas = np.ones((lines * cell, columns * cell))
    figure = _figure((columns * 0.5, lines * 0.5 + 0.5))
    axes = figure.subplots()
    for index, image in enumerate(images):
        top, left = index // columns * cell, index % columns * cell
        canvas[top + 3:top + 3 + tile, left + 2:left + 2 + tile] = 1 - image.reshape(tile, tile)
        right = predicted[index] == classes[index]
        label = f"{predicted[index]}" if right else f"{predicted[index]} ({classes[index]})"
        axes.text(left + 6, top + 2, label, ha="center", va="bottom", fontsize=7, color="black" if right else "red",
                  weight="normal" if right else "bold")
    axes.imshow(canvas, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_axis_off()
    axes.set_title(title)
    with files.replacing(path) as temporary:
        figure.savefig(temporary, metadata={"Software": None})
    return path


def activity(path: Path, title: str, products: Sequence[Mapping[str, np.ndarray]], bucket: int) -> Path:
    """Draw transfers a cycle of the streams over time.

    Parameters
    ----------
    path : Path
        PNG to write.
    title : str
        Title of the picture.
    products : list of dict
        For each product: stream -> transfers per bucket of cycles.
    bucket : int
        Cycles in a bucket.
    """
    names = [name for name in ("i_w", "i_x", "o") if name in products[0]]
    figure = _figure((11, 1.6 * len(names) + 0.8))
    panels = np.atleast_1d(figure.subplots(len(names), 1, sharex=True))
    for axes, name in zip(panels, names, strict=True):
        line = np.concatenate([product[name] for product in products]) / bucket
        at = np.arange(len(line)) * bucket
        axes.fill_between(at, line, step="post", alpha=0.7)
        axes.set_ylim(0, 1.05)
        axes.set_ylabel(f"{name}\nbeats a cycle")
        start = 0
        for product in products:
            axes.axvline(start, color="gray", linewidth=0.8)
            start += len(product[name]) * bucket
    panels[-1].set_xlabel("cycles; a line where a layer starts")
    panels[0].set_title(title)
    with files.replacing(path) as temporary:
        figure.savefig(temporary, metadata={"Software": None})
    return path
