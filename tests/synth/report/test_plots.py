"""Pictures of comparisons show the designs that they name, in order."""

import itertools
from dataclasses import replace

import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.options import design_from_values
from synth.compare import design_space
from synth.compare.clocks import Point
from synth.compare.comparison import Comparison
from synth.report import html, plots
from tests.synth.fake import FakeReport


def measured(core, **values):
    design = design_from_values({"multiplier": "recoded"} | values)
    return Comparison(FakeReport(core, design), {"fp32": FakeReport(4000, Design(arithmetic="fp32"))})


@pytest.fixture
def comparisons():
    """Blocks out of order, groups, and the same design on other arrays."""
    return [measured(600, block="1,64"), measured(400), measured(800, block="1,8"), measured(700, block="16,16"),
            measured(500, block="1,16"), measured(410, rows=64), measured(390, rows=64, block="1,64"),
            measured(420, rows=16), measured(450, group="4,4"), measured(640, group="1,1"),
            measured(300, mantissa=12), measured(200, block="1,64", share=2)]


def lines(figure):
    axes = figure.axes[0]
    return [text.get_text() for text in axes.get_xticklabels()], [list(line.get_ydata()) for line in axes.lines]


def test_blocks_are_in_order_and_of_one_array(comparisons):
    """Tiles come after blocks along K; other arrays and shared accumulation are no block's figures."""
    labels, ((*areas,),) = lines(plots.block_plot(comparisons))
    assert labels == ["1 x 8", "1 x 16", "1 x 32", "1 x 64", "16 x 16"] and areas == [800, 500, 400, 600, 700]


def test_groups_are_in_order_and_of_one_array(comparisons):
    labels, ((*areas,),) = lines(plots.group_plot(comparisons))
    assert labels == ["1 x 1", "4 x 4", "8 x 4"] and areas == [640, 450, 400]
    assert plots.group_plot(comparisons[:5]) is None


def test_ratios_by_array(comparisons):
    """A line of default designs, a thinner one of blocks as long as the array, then the published ones."""
    _, found = lines(plots.ratio_plot(comparisons))
    assert found[:2] == [[4000 / 420, 4000 / 400, 4000 / 410], [4000 / 400, 4000 / 390]]
    labels = [[text.get_text() for text in plots.ratio_plot(some).legends[0].texts]
              for some in (comparisons, comparisons[:5])]
    assert ["blocks as long as the array" in each for each in labels] == [True, False]


def test_what_fills_the_rows():
    assert design_space.fills_rows(Design(rows=64, cols=64, format=HBFPFormat(block=(1, 64))))
    assert design_space.fills_rows(Design())
    assert not design_space.fills_rows(Design(rows=64, cols=64))


def test_floor_plan_is_of_the_8_bit_core(comparisons):
    assert html._headline(comparisons).report.core.area == 400
    assert html._headline(comparisons[-2:]).report.core.area == 300


def test_fronts_are_in_view():
    """What is neither smaller nor quicker than another is on no line, and may be out of view."""
    floats = Design(arithmetic="fp32")
    points = [Point(FakeReport(area, design), {"group": array, "accumulator": core}) for area, design, array, core in (
        (450, Design(), 9, 30), (440, Design(group=(16, 4)), 18, 31), (460, Design(pipeline=2), 9, 3000),
        (4500, floats, 50, 35), (4700, floats, 20, 22), (4600, floats, 60, 40))]
    for axes, fronts in zip(plots.pareto_plot(points).axes, ([30, 31, 22, 50], [9, 18, 20, 50]), strict=True):
        low, high = axes.get_xlim()
        assert axes.get_xscale() == "log" and low < min(fronts) < max(fronts) < high < 2 * max(fronts)
        lines = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
        assert sorted(x for line in lines for x in line.get_xdata()) == sorted(fronts)


def crowded():
    """Fronts of three kinds of number whose points nearly coincide."""
    kinds = [Design(), Design(format=HBFPFormat(mantissa=4)), Design(arithmetic="fp32")]
    return [Point(FakeReport(area * (1 - 0.01 * n), replace(design, pipeline=n, group=None)),
                  {"group": 9 + n / 20, "accumulator": 30 + n / 9})
            for design, area in zip(kinds, (450, 440, 4500), strict=True) for n in range(5)]


@pytest.mark.parametrize("draw", [plots.ratio_plot, plots.integer_plot, plots.group_plot, plots.block_plot,
                                  lambda _: plots.pareto_plot(crowded())],
                         ids=["ratio", "integer", "group", "block", "pareto"])
def test_labels_do_not_overlap(draw):
    """Lines that end close to each other and points that nearly coincide have labels that can be read."""
    near = [measured(core + n, **values | {"mantissa": mantissa}) for n, mantissa in enumerate((3, 4, 5, 6, 8))
            for core, values in ((400, {}), (410, {"rows": 64}), (450, {"group": "4,4"}), (600, {"block": "1,64"}))]
    figure = draw([Comparison(each.report, each.baselines | {"int": each.baselines["fp32"]}) for each in near])
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert len(boxes) >= 3 and not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_every_kind_of_number_is_named():
    for axes in plots.pareto_plot(crowded()).axes:
        assert {"HBFP8", "HBFP4", "lean FP32"} <= {text.get_text() for text in axes.texts}


def test_published_ratios_without_those_of_the_last_width():
    found = html._published([measured(400), measured(300, mantissa=12)])
    assert "HBFP8" in found and "10.00" in found and "8.28" in found and "HBFP12" not in found
    assert html._published([measured(300, mantissa=12)]) is None
