"""The picture of a training: losses of the accelerator and of PyTorch, step by step."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..pictures import figure, lines, save


def draw(path: Path, losses: Mapping[str, Sequence[float]], title: str) -> Path:
    """Draw name -> loss of each step as PNG, one line on the other; the path."""
    made, (axes,) = figure(1)
    lines(axes, {name: (range(len(each)), [float(loss) for loss in each]) for name, each in losses.items()})
    axes.set_xlabel("step")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("loss")
    axes.set_title(title, fontsize=9)
    save(made, path)
    return path
