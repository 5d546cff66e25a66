"""Figures that a command measured: what is read from its report, and what a file keeps."""

import json
from pathlib import Path

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
    found.report.bit = 1.2
    data_of_bits = measure.area(json.loads(json.dumps(sweep.as_dict([found]))))
    assert data_of_bits["cores"]["hbfp8"].keys() - data["cores"]["hbfp8"] == {"fp32_memories_bit",
                                                                              "fp32_everything_bit"}
    assert measure.joined(data, data_of_bits)["cores"]["hbfp8"].keys() >= {"fp32_memories_bit", "fp32_memories"}
    assert data["floats"] == {"fp32": {"element": 3600, "core": 3600, "side": 3601},
                              "fp32_8x4": {"element": 4000, "core": 4000, "side": 4001}}
    assert data["integers"] == {"int8": {"core": 200}}


def test_denominators_are_read():
    data = {"denominators": [{"floats": [
        {"arithmetic": name, "multiplier": multiplier, "group": group, "core_nand2": core}
        for name, multiplier, group, core in (("fp32", "recoded", [1, 2], 5.0), ("fma", "recoded", [1, 2], 6.0),
                                              ("fp32", "recoded", [8, 8], 4.0), ("fp32", "plain", [1, 2], 9.0),
                                              ("fp32", "plain", [8, 8], 8.0), ("fma", "plain", [8, 8], 7.0))]}]}
    assert measure.denominators(data) == {"groups": {"g1x2": {"fp32": 5, "fma": 6}, "g8x8": {"fp32": 4}},
                                          "plain_fp32": 8}


def test_balance_is_read():
    """A row for each accelerator on a front, the smallest first, and for each preset, with what is better."""
    points = [{"options": options, "logic": 1.0, "memories": area - 1.0, "all": area, "cycles": {
        "bert-base": cycles, "train:docs/examples/training.py": 7}} for options, area, cycles in (
            ("", 9.0, 5), ("--reads 16 --w-words 64", 4.0, 5), ("--depth 4", 6.0, 8))]
    found = measure.balance({"networks": ["bert-base", "train:docs/examples/training.py"], "points": points,
                             "fronts": {"bert-base": [1], "train:docs/examples/training.py": [1, 0]},
                             "presets": {"default": {"point": 0, "beaten": 1}, "small": {"point": 1, "beaten": None}}})
    assert list(found["front"].items()) == [
        ("reads_16_w_words_64", {"title": "`--reads 16 --w-words 64`", "all": 4.0, "logic": 1.0, "memories": 3.0,
                                 "bert_base": 5, "training": 7}),
        ("default", {"title": "the default", "all": 9.0, "logic": 1.0, "memories": 8.0, "bert_base": 5, "training": 7})]
    assert [(each["title"], each["better"]) for each in found["presets"].values()] == [
        ("`default`", "`--reads 16 --w-words 64`"), ("`small`", "none")]


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
    old = {"b": {"title": "B", "x": 1.0, "y": 2, "published": None}, "a": {"title": "A", "x": 3.0},
           "gone": {"title": "C", "x": 4.0}}
    new = {"a": {"x": 1 / 3}, "b": {"x": 2.0, "z": None}, "c": {"x": 5}}
    found = measure.merged(old, new)
    assert found == {"b": {"title": "B", "x": 2.0, "published": None, "z": None},
                     "a": {"title": "A", "x": 0.33333333}, "c": {"x": 5}}
    assert list(found) == ["b", "a", "c"] and list(found["b"]) == ["title", "x", "published", "z"]


@pytest.mark.parametrize("name", figures.names())
def test_every_figure_has_a_run_or_a_reason(name):
    about = figures.load(name)
    there = dict(measure.numbers(about["figures"]))
    given = {address for run in about["runs"] for *_, found in measure.filled(run) for address in found}
    assert list(measure.unexplained(about)) == [] and given <= there.keys()
    assert all(any(measure.fnmatchcase(address, pattern) for address in there) for pattern in about["kept"])


def test_what_is_not_explained():
    about = {"runs": [{"command": "x", "for": {"w": [4, 8]}, "figures": {"a.w{w}": "b"}},
                      {"reader": "c", "groups": ["c"]}],
             "kept": {"a.w8": "so", "d.*": "so"},
             "figures": {"a": {"title": "A", "w4": 1, "w6": 2, "w8": 3}, "c": {"x": 1}, "d": {"y": 2},
                         "e": {"z": None}}}
    assert list(measure.unexplained(about)) == ["a.w6", "a.w8"]    # by nobody, and by two


ABOUT = {"about": "a", "runs": [
    {"command": "python -m synth --mantissa {w}{words}", "report": "s*.json",
     "for": {"row, words": [["plain", ""], ["tiles", " --block 4,4"]], "w": [4, 8]},
     "figures": {"{row}.w{w}": "report.core / 2"}},
    {"command": "python -m benchmarks.x", "figures": {"new.x": "data['kind=b'].x"}},
    {"for": {"row": ["plain", "tiles"]}, "figures": {"{row}.over": "{row}.w8 / {row}.w4"}}],
    "takes": "a minute", "kept": {"plain.before": "of the old adder"}, "commit": None, "library": None, "tools": {},
    "sources": ["rtl"], "figures": {"tiles": {"title": "Tiles", "w4": 1, "w8": 1, "over": 1},
                                    "plain": {"w4": 1, "w8": 1, "over": 1, "before": 7}}}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A file of figures, and a folder for reports."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/sizes.json").write_text(json.dumps(ABOUT))
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "figures")
    monkeypatch.setattr(files, "output", lambda *parts: tmp_path.joinpath("out", *parts))
    figures.load.cache_clear()
    yield tmp_path
    figures.load.cache_clear()


def test_file_is_written_anew(place):
    """Each command once, and what follows from its figures; titles, and what is kept, stay."""
    called = []

    def run(words):
        *words, option, path = words
        called.append(" ".join(words))
        if words[0] == "synth":
            assert option == "--out"
            files.write_json(Path(path) / "synth.json", {
                "report": {"core": len(words) * int(words[2]) + 1 / 3, "library": {"name": "cells"}, "tools": TOOLS}})
        else:
            assert option == "--json"
            files.write_json(Path(path), [{"kind": "a", "x": 1}, {"kind": "b", "x": 2}])

    measure.measure("sizes", run, "c" * 40)
    assert called == ["synth --mantissa 4", "synth --mantissa 8", "synth --mantissa 4 --block 4,4",
                      "synth --mantissa 8 --block 4,4", "benchmarks.x"] == [
        each.removeprefix("python -m ") for each in measure.commands(ABOUT)]
    assert figures.load("sizes") == ABOUT | {
        "commit": "c" * 40, "library": "cells", "tools": TOOLS, "figures": {
            "tiles": {"title": "Tiles", "w4": 10.166667, "w8": 20.166667, "over": 1.9836065},
            "plain": {"w4": 6.1666667, "w8": 12.166667, "over": 1.972973, "before": 7}, "new": {"x": 2}}}


@pytest.mark.parametrize("name, line", [
    ("size", "must be one of accelerator, area, "),
    ("prices", "is not measured: published or assumed, each with its ")])
def test_what_no_command_measures(capsys, name, line):
    with pytest.raises(SystemExit) as ended:
        main(["figures", "--measure", name])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"python -m flow figures: error: --measure {name}: {line}")


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
