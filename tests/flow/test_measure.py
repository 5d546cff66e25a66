"""Figures that a command measured: what is read from its report, and what a file keeps."""

import json

import pytest

from flow import measure
from flow.__main__ import main
from flow.figures import called
from golden.perf.silicon import cases
from hbfp import figures, files
from hbfp.options import design_from_values
from synth.compare import sweep
from synth.compare.comparison import Comparison
from synth.measure.area import Figures, Report

TOOLS = {"yosys": "0.70"}


def report(values, area):
    """A report of a core in which all is in the elements."""
    design = design_from_values(values)
    return Report(design.name, design, "area", {"name": "cells"}, TOOLS, {},
                  {"elements": Figures(area=area * 1024, registers=0.0), "side unit": Figures(area=1024.0)}, 1024)


@pytest.mark.parametrize("values, name", [
    ({"mantissa": 6}, "hbfp6"), ({"mantissa": 4, "wide": 6}, "hbfp4_wide6"),
    ({"mantissa": 4, "block": (1, 64), "sparse": (2, 4)}, "hbfp4_sparse"),
    ({"mantissa": 8, "block": (32, 32), "accumulate": "aligned"}, "hbfp8_tiles"),
    ({"mantissa": 8, "accumulate": "bf16"}, "hbfp8_bf16"),
    ({"mantissa": 8, "block": (1, 128), "share": 4}, "hbfp8_share4"),
    ({"arithmetic": "int", "mantissa": 4}, "int4"), ({"arithmetic": "fp32"}, "fp32")])
def test_names_of_cores(values, name):
    """Those that stand in the file."""
    assert measure.core_name(json.loads(json.dumps(report(values, 1).as_dict()))["design"]) == name
    assert name in {key for rows in figures.figure("area").values() for key in rows} | {"int4"}


def test_area_is_read():
    found = Comparison(report({"mantissa": 8}, 400.0), {"fp32": report({"arithmetic": "fp32"}, 4000.0),
                                                        "int": report({"arithmetic": "int"}, 200.0)},
                       smallest={"fp32": report({"arithmetic": "fp32", "group": (8, 8)}, 3600.0)})
    data = measure.area(json.loads(json.dumps(sweep.as_dict([found]))))
    assert data["cores"] == {"hbfp8": {
        "element": 400, "core": 400, "side": 401, "fp32": 9, "fp32_same_group": 10, "integer": 2,
        "fp32_side": 3601 / 401, "fp32_memories": 9, "fp32_everything": 3601 / 401}}
    assert data["floats"] == {"fp32": {"element": 3600, "core": 3600, "side": 3601},
                              "fp32_8x4": {"element": 4000, "core": 4000, "side": 4001}}
    assert data["integers"] == {"int8": {"core": 200}}


def test_accelerator_is_read():
    data = {"logic": 30.0, "bits": 8, "memories": 12.0, "components": [
        {"name": "side unit", "logic": 30.0, "share": 1.0, "flipflops": 4, "bits": 8, "memories": 12.0, "cells": 3}]}
    assert measure.accelerator(data) == {
        "components": {"side_unit": {"logic": 30, "share": 1, "flipflops": 4, "bits": 8, "memories": 12}},
        "all": {"logic": 30, "bits": 8, "memories": 12}}


def test_denominators_are_read():
    data = {"denominators": [{"floats": [
        {"arithmetic": name, "multiplier": multiplier, "group": group, "core_nand2": core}
        for name, multiplier, group, core in (("fp32", "recoded", [1, 2], 5.0), ("fma", "recoded", [1, 2], 6.0),
                                              ("fp32", "recoded", [8, 8], 4.0), ("fp32", "plain", [1, 2], 9.0),
                                              ("fp32", "plain", [8, 8], 8.0), ("fma", "plain", [8, 8], 7.0))]}]}
    assert measure.denominators(data) == {"groups": {"g1x2": {"fp32": 5, "fma": 6}, "g8x8": {"fp32": 4}},
                                          "plain_fp32": 8}


def test_silicon_is_read():
    """By the model itself: the rows are those that stand in the file."""
    found = measure.silicon([{"network": each.network, "ends": each.ends, "epochs": each.epochs, "wide": each.wide,
                              "area_time": each.area_time} for each in cases()])
    rows = figures.figure("silicon.trainings")
    assert list(found["trainings"]) == list(rows)
    for name, row in found["trainings"].items():
        kept = {key: value for key, value in rows[name].items() if key != "title"}
        assert row == pytest.approx(kept, rel=5e-3, abs=6e-3)


def test_texts_stay_and_rows_keep_their_order():
    old = {"b": {"title": "B", "x": 1.0, "y": 2}, "a": {"title": "A", "x": 3.0}, "gone": {"title": "C", "x": 4.0}}
    new = {"a": {"x": 1 / 3}, "b": {"x": 2.0, "z": None}, "c": {"x": 5}}
    found = measure.merged(old, new)
    assert found == {"b": {"title": "B", "x": 2.0, "z": None}, "a": {"title": "A", "x": 0.33333333}, "c": {"x": 5}}
    assert list(found) == ["b", "a", "c"] and list(found["b"]) == ["title", "x", "z"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A file of figures, and a command that writes a report."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/accelerator.json").write_text(json.dumps({
        "about": "a", "command": "python -m synth accelerator", "commit": None, "library": None, "tools": {},
        "sources": ["rtl"], "figures": {"components": {"one": {"title": "One", "logic": 1}}, "all": {}}}))
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "figures")
    monkeypatch.setattr(files, "output", lambda *parts: tmp_path.joinpath("out", *parts))
    figures.load.cache_clear()
    yield tmp_path
    figures.load.cache_clear()


def test_file_is_written_anew(place):
    def run(words):
        assert words == ["synth", "accelerator", "--out", str(place / "out/figures/accelerator")]
        files.write_json(place / "out/figures/accelerator/accelerator.json", {
            "logic": 2.5, "bits": 0, "memories": 0.0, "library": "cells", "tools": TOOLS,
            "components": [{"name": "one", "logic": 2.5, "share": 1.0, "flipflops": 1, "bits": 0, "memories": 0.0}]})

    measure.measure("accelerator", run, "c" * 40)
    assert figures.load("accelerator") == {
        "about": "a", "command": "python -m synth accelerator", "commit": "c" * 40, "library": "cells", "tools": TOOLS,
        "sources": ["rtl"], "figures": {
            "components": {"one": {"title": "One", "logic": 2.5, "share": 1.0, "flipflops": 1, "bits": 0,
                                   "memories": 0.0}}, "all": {"logic": 2.5, "bits": 0, "memories": 0.0}}}


def test_what_no_command_measures(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["figures", "--measure", "size"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == ("python -m flow figures: error: --measure size: must be one of area, "
                                       "accelerator, denominators, silicon\n")


def test_what_is_measured_is_committed(capsys, monkeypatch):
    monkeypatch.setattr("flow.figures.git", lambda *words: "M rtl/lib/x.py" if words[0] == "status" else "c" * 40)
    with pytest.raises(SystemExit) as ended:
        main(["figures", "--measure", "area"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("python -m flow figures: error: --measure area: needs a commit of what "
                                              "it measures: rtl/lib, ")


def test_command_that_fails(monkeypatch):
    """It has said why; nothing is written."""
    monkeypatch.setattr("sys.executable", "false")
    with pytest.raises(SystemExit) as ended:
        called(["synth"])
    assert ended.value.code == 1
