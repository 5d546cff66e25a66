"""The picture of a run: shares of time, and a file."""

import numpy as np

from golden.perf.accelerator.timeline import draw, share

from .example import PROGRAM, TIMES


def test_share_of_time():
    begins, ends = np.array([0, 15, 12]), np.array([10, 25, 20])
    assert np.allclose(share(begins, ends, 40, 4), [1, 0.8, 0.5, 0])
    assert np.allclose(share(begins[:0], ends[:0], 40, 4), 0)


def test_picture(tmp_path):
    path = draw(tmp_path / "timeline.png", PROGRAM, TIMES, "A run")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
