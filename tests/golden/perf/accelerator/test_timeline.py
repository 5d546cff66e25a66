"""The picture of a run: shares of time, and a file."""

import numpy as np

from golden.perf.accelerator.timeline import _name, draw, share
from golden.perf.pictures import figure

from .example import PROGRAM, TIMES


def test_share_of_time():
    begins, ends = np.array([0, 15, 12]), np.array([10, 25, 20])
    assert np.allclose(share(begins, ends, 40, 4), [1, 0.8, 0.5, 0])
    assert np.allclose(share(begins[:0], ends[:0], 40, 4), 0)


def test_picture(tmp_path):
    path = draw(tmp_path / "timeline.png", PROGRAM, TIMES, "A run")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_names_stand_beside_each_other():
    """Of many, those that fit in three lines; none on another, none cut."""
    made, (axes, *_) = figure(1, rows=2)
    axes.set_xlim(0, 100)
    _name(made, axes, [f"layers.{place}.linear" for place in range(40)], np.linspace(0, 100, 40))
    boxes = [text.get_window_extent() for text in axes.texts]
    assert 10 < len(boxes) < 40 and {text.xyann[1] for text in axes.texts} == {2, 11, 20}
    assert all(one.x1 <= made.bbox.width for one in boxes)
    assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[:at])
