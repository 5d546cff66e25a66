"""Sweeps: which figures they give.

Covers: synth/compare/comparison.py, synth/report/html.py, synth/report/tables.py.
"""

from hbfp.design import Design
from synth.compare import sweep
from synth.compare.comparison import Comparison
from synth.report import html, plots, tables
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
