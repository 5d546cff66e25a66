"""Labels stand apart, in the order of what they name."""

import matplotlib.pyplot as plt
import pytest

from synth.report.labels import label_ends, label_points, spread


@pytest.mark.parametrize("places, moved", [
    ([1, 5, 9], [1, 5, 9]), ([3, 3, 3], [3, 5, 7]), ([9, 1, 2], [9, 1, 3]), ([], []), ([4, 3, 2], [6, 4, 2])])
def test_spread_keeps_order_and_gap(places, moved):
    assert spread(places, 2) == moved


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_ends_that_coincide_are_moved_up(axes):
    axes.plot([0, 1], [0, 1])
    label_ends(axes, [(1, 0.5, "one", "C0"), (1, 0.5, "two", "C1"), (1, 0.9, "far", "C2")])
    heights = {text.get_text(): text.get_window_extent().y0 for text in axes.texts}
    assert heights["one"] < heights["two"] < heights["far"]
    assert [text.xyann[1] for text in axes.texts if text.get_text() != "two"] == [0, 0]


def test_a_point_without_room_has_no_label(axes):
    """Twenty points on one place: as many labels as there are places around it, the first ones first."""
    axes.plot([0, 1], [0, 1])
    label_points(axes, [(0.5, 0.5, f"point {n}", {}) for n in range(20)])
    assert [text.get_text() for text in axes.texts][:4] == [f"point {n}" for n in range(4)]
    assert 4 <= len(axes.texts) < 20
