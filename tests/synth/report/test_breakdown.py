"""Bars and floor plan: kinds of number by name, floats last, labels apart."""

import itertools

import pytest
from matplotlib.text import Text

from hbfp.design import Design
from hbfp.options import design_from_values
from synth.measure.area import COMPONENTS, Figures
from synth.report.breakdown import _by_kind, floor_plan
from tests.synth.fake import FakeReport


def report(area, **values):
    return FakeReport(area, design_from_values({"multiplier": "recoded"} | values))


def test_kinds_are_named_and_floats_last():
    fp32 = FakeReport(3919, Design(arithmetic="fp32", group=(8, 8)))
    found = [report(189, mantissa=4), fp32, report(135, mantissa=4, arithmetic="int"), report(449)]
    assert list(_by_kind(found)) == ["HBFP4", "int4", "HBFP8", "lean FP32"]


def test_two_of_a_kind_go_by_their_names():
    found = [report(449), report(420, block="1,64", share=2), report(390, arithmetic="int")]
    assert list(_by_kind(found)) == [found[0].name, found[1].name, "int8"]


@pytest.mark.parametrize("areas", [(59, 1, 0.1, 10, 1, 0.3, 28), (50, 4, 4, 4, 4, 4, 4), (1, 1, 1, 1, 1, 1, 1)])
def test_labels_of_the_floor_plan_do_not_overlap(areas):
    one = report(449)
    one.components = {name: Figures(area=area) for name, area in zip(COMPONENTS, areas, strict=True)}
    one.whole = Figures(area=sum(areas))
    figure = floor_plan(one)
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in figure.axes[0].texts]    # of a note without its line
    assert len(boxes) == len(COMPONENTS)
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
