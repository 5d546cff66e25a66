"""Sweeps: which figures they give.

Covers: synth/compare/comparison.py, synth/report/clock_table.py, synth/report/html.py, synth/report/tables.py.
"""

from hbfp.design import Design
from hbfp.format import HBFPFormat
from synth.compare import sweep
from synth.compare.clocks import Point
from synth.compare.comparison import Comparison
from synth.compare.design_space import designs_of_plan
from synth.report import clock_table, html, plots, tables
from tests.synth.fake import FakeReport

SMALLEST = {"fp32": FakeReport(4500, Design(arithmetic="fp32", group=(2, 4)))}


def test_every_figure_is_of_the_smallest_float_core():
    """CSV, JSON, page and picture divide the float core of the best group; that of the same group stands beside."""
    baselines = {"fp32": FakeReport(5000, Design(arithmetic="fp32"))}
    one = Comparison(FakeReport(500, Design()), baselines, smallest=SMALLEST)
    assert (one.ratios["fp32"]["core"], one.smallest_ratios["fp32"]["core"]) == (10, 9)
    head, row = (line.split(",") for line in tables.csv_text([one]).splitlines())
    assert dict(zip(head, row, strict=True))["smallest fp32 over core"] == "9.000"
    (entry,) = sweep.as_dict([one])["studies"]
    assert entry["smallest_ratios"]["fp32"]["core"] == 9 and entry["ratios"]["fp32"]["core"] == 10
    assert entry["smallest"] == {"fp32": "fp32_r32_c32_g2x4, area, some"}
    (line, *_) = plots.ratio_plot([one]).axes[0].lines
    assert list(line.get_ydata()) == [9]
    assert "<td>9.00</td>" in html._published([one]) and "10.00" not in html._published([one])


def test_smallest_group_of_a_float_is_found(monkeypatch):
    """Groups of 2 x 4 are the smallest here; integers keep the design's."""
    monkeypatch.setattr(sweep, "measure", lambda design, *_, bit: FakeReport(
        abs(design.group[0] * design.group[1] - 8) + 400, design))
    found = sweep._compared(Design(), "area", None, ["fp32", "int"], 1.2)
    assert found.baselines["fp32"].design.group == found.baselines["int"].design.group == (8, 4)
    assert found.smallest["fp32"].design.group == (2, 4) and found.smallest["int"].design.group == (8, 4)


def test_clocks_of_cores_with_few_registers_and_of_floats_that_may_meet_them():
    found = sweep.clock_designs(designs_of_plan("clocks")[0], ["int", "fp32"])
    assert [(each.format.mantissa, each.pipeline) for each in found if each.blocked] == [
        (mantissa, depth) for mantissa in (4, 6, 8) for depth in (0, 1, 2)]
    floats = [each for each in found if not each.blocked]
    assert len(set(floats)) == len(floats) == 5 * 2 and {each.arithmetic for each in floats} == {"fp32"}
    assert {each.pipeline for each in floats} == {1, 2, 3, 4, 5}


def clocked():
    """Cores of two widths and two kinds of float by area and period."""
    narrow = HBFPFormat(mantissa=4)
    return [Point(FakeReport(area, design), {"group": period, "encode": 2}) for area, period, design in (
        (500, 13, Design()), (510, 7, Design(pipeline=2)), (200, 12, Design(format=narrow)),
        (6000, 14, Design(arithmetic="fp32", pipeline=1)), (6300, 12, Design(arithmetic="fp32", pipeline=2)),
        (6200, 13, Design(arithmetic="fp32", pipeline=2, multiplier="recoded", group=(1, 8))),
        (2800, 8, Design(arithmetic="bf16", pipeline=1)), (2700, 8.5, Design(arithmetic="bf16", pipeline=1)))]


def test_smallest_float_at_the_clock_of_each_core():
    """Kinds stay apart, and so do widths: one core's clock asks for another float than the next one's."""
    found = sweep.equal_clocks(clocked())
    assert [(each.own.kind, each.own.pipeline, [None if point is None else point.area
             for point in each.equal("core").values()]) for each in found] == [
        ("HBFP8", 0, [6200, 2700]), ("HBFP8", 2, [None, None]), ("HBFP4", 0, [6300, 2700])]
    data = sweep.as_dict((), clocked())["equal_clock"]
    assert [each["against"]["fp32"]["ratio"] for each in data] == [12.4, None, 31.5]
    assert [each["design"]["pipeline"] for each in data] == [0, 2, 0]


def test_table_of_equal_clocks_has_the_quickest_in_brackets_where_none_meets_one():
    table = clock_table.table(sweep.equal_clocks(clocked()))
    assert [column.header for column in table.columns] == [
        "core", "registers", "ns", "core", "lean FP32", "NAND2", "/ core", "BF16 x BF16 + FP32", "NAND2", "/ core"]
    rows = list(zip(*(column.cells for column in table.columns), strict=True))
    assert rows[0] == ("HBFP8", "0", "13.00", "500.0", "2, 1 x 8, recoded", "6,200", "[bold]12.40[/bold]",
                       "1, 1 x 4, plain", "2,700", "[bold]5.40[/bold]")
    assert rows[1] == ("HBFP8", "2", "7.00", "510.0", "(2, 1 x 4, plain: 12.00 ns)", "6,300", "(12.35)",
                       "(1, 1 x 4, plain: 8.00 ns)", "2,800", "(5.49)")
