"""Equal clock: which groups and pipelines are tried, and which of them is chosen.

Covers: synth/report/tables.py.
"""

import itertools

import pytest

from hbfp.design import PIPELINES, Design
from hbfp.options import design_from_values
from synth.__main__ import main
from synth.compare import clocks as clocks_module
from synth.compare.clocks import Clocks, Point, smallest, variants
from synth.measure import timing
from synth.report import tables
from synth.tools import opensta
from tests.synth.fake import FakeReport


def point(area, group, lanes, arithmetic="hbfp", pipeline=0, grid=(8, 4)):
    return Point(FakeReport(area, Design(arithmetic=arithmetic, pipeline=pipeline, group=grid)),
                 {"group": group, "accumulator": lanes, "drain": 1000.0})


@pytest.fixture
def found():
    """Elements of the design take 9 ns, its accumulation 30."""
    own = point(450, 9, 30)
    return Clocks(own, [own, point(500, 7, 30, grid=(4, 1)), point(600, 4, 30, grid=(1, 1))], {
        "fp32": [point(4500, 50, 31, "fp32"), point(4400, 52, 31, "fp32", grid=(1, 4)),
                 point(4600, 29, 25, "fp32", 1, (1, 4)), point(5100, 8, 22, "fp32", 2, (1, 4))],
        "bf16": [point(1800, 40, 30, "bf16")]})


def test_smallest_of_those_that_are_quick_enough(found):
    """A core is as slow as its slowest unit, the way out aside."""
    assert found.own.slowest == "accumulator" and found.own.period() == 30 and found.own.period("array") == 9
    assert smallest(found.others["fp32"]).area == 4400
    assert smallest(found.others["fp32"], 31).area == 4600 and smallest(found.others["fp32"], 21) is None
    assert smallest(found.others["fp32"], 9, "array").area == 5100


def test_both_ways(found):
    assert {name: best.area for name, best in found.best().items()} == {"hbfp": 450, "fp32": 4400, "bf16": 1800}
    assert found.equal("core")["fp32"].area == 4600 and found.equal("array")["fp32"].area == 5100
    assert found.equal("core")["bf16"] is None
    assert [(mine.area if mine else None) for _, mine in found.reverse("core")] == [None, None]
    assert [mine.area for _, mine in found.reverse("array")] == [450, 500]


def test_plain_data(found):
    data = found.as_dict()
    assert data["equal_clock"]["core"]["slowest"] == "accumulator" and data["equal_clock"]["core"]["period_ns"] == 30
    assert data["equal_clock"]["array"]["against"]["fp32"]["ratio"] == pytest.approx(5100 / 450)
    assert data["best"]["fp32"]["ratio"] == pytest.approx(4400 / 450)
    assert data["equal_clock"]["core"]["against"]["bf16"] == {"baseline": None, "design": data["pareto"][0],
                                                              "ratio": None}
    assert len(data["pareto"]) == 8
    assert {"arithmetic", "mantissa", "group", "pipeline", "period_ns", "core_nand2"} <= set(data["pareto"][0])


def test_all_of_a_core_sets_its_clock_where_it_was_timed(found):
    """So a core with registers is held to what stands between its units, too."""
    own = Point(found.own.report, found.own.periods | {timing.WHOLE: 34})
    assert own.slowest == timing.WHOLE and own.period() == 34 and own.period("array") == 9
    assert Clocks(own, [own], found.others).equal("core")["fp32"].area == 4600
    assert found.quickest("fp32").area == 5100 and found.quickest("bf16").area == 1800


def test_cores_of_blocks_with_registers_are_timed_whole(monkeypatch):
    asked = []
    monkeypatch.setattr(clocks_module, "measure", lambda design, *_: FakeReport(1, design))
    monkeypatch.setattr(timing, "periods", lambda design, *_, kinds: asked.append(kinds) or {})
    list(clocks_module._points([Design(), Design(pipeline=1), Design(arithmetic="fp32", pipeline=1)], "speed", None))
    assert [timing.WHOLE in kinds for kinds in asked] == [False, True, False]
    assert all("group" in kinds and "array" not in kinds and "drain" not in kinds for kinds in asked)


def test_tables_say_what_was_found(found):
    best, core, _, array, backward = tables.clock_tables(found)
    assert "9.78 x" in list(best.columns[-1].cells) and "30.0 ns, set by its accumulator" in core.title
    assert list(core.columns[1].cells) == ["1 x 4", "none"] and list(array.columns[-1].cells)[0] == "11.33 x"
    assert list(backward.columns[-1].cells) == ["10.22 x", "10.20 x"]


def test_variants_are_possible_designs():
    assert [(each.group, each.pipeline) for each in variants(Design(), range(3))] == [
        ((1, 1), 0), ((2, 1), 0), ((4, 1), 0), ((8, 1), 0), ((8, 4), 0), ((8, 8), 0), ((16, 4), 0),
        ((8, 4), 1), ((8, 4), 2)]
    small = design_from_values({"rows": 3, "cols": 2, "accumulate": "aligned"})
    assert [each.group for each in variants(small, range(1))] == [(1, 1), (1, 2)]
    floats = variants(Design(arithmetic="bf16"), range(20))
    assert {(each.pipeline, each.group) for each in floats if each.pipeline} == set(
        itertools.product(range(1, PIPELINES["bf16"] + 1), ((1, 4), (1, 8))))
    assert all(each.group[0] <= 2 and each.group[1] <= 2 for each in variants(Design(arithmetic="fma", rows=2)))
    assert [(each.group, each.pipeline) for each in variants(Design(arithmetic="int"))] == [((8, 4), 0)]


def test_no_timer_no_clocks(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(opensta, "find", lambda: None)
    with pytest.raises(SystemExit) as caught:
        main(["--recipe", "generic", "--equal-clock", "--out", str(tmp_path / "out")])
    assert caught.value.code == 2
    assert capsys.readouterr().err == ("python -m synth: error: --equal-clock: needs OpenSTA and a cell library: "
                                       "python -m synth fetch\n")
    assert not (tmp_path / "out").exists()
