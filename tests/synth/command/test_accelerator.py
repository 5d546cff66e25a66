"""``python -m synth accelerator``: what is said of bad options, and how modules make up components.

Covers: synth/measure/accelerator.py, synth/report/accelerator.py, synth/report/machines.py,
synth/compare/machines.py.
"""

import json
import time

import pytest

from synth.__main__ import main
from synth.measure import accelerator
from synth.measure.area import Figures

SMALL = ["--rows", "8", "--block", "1,8", "--depth", "32", "--row-words", "4"]


@pytest.mark.parametrize("words, line", [
    (["--recipe", "ecp5"], "--recipe ecp5: must be one of area, adders, stock, speed, generic"),
    (["--v-words", "96"], "--v-words 96: must be a power of two"),
    (["--memory-bit", "x"], "--memory-bit x: must be 0 to 100"),
    (["--against", "fp64"], "--against fp64: must be of hbfpW, W bits, fp32, bf16, fp16, int8"),
    (["--against", "hbfp"], "--against hbfp: must be of hbfpW, W bits, fp32, bf16, fp16, int8"),
    (["--against", "fp32,hbfp99"], "--mantissa 99: must be 2 to 16"),
    (["--against", "fp32,hbfp8"], "--against hbfp8: is the machine itself")])
def test_wrong_option(capsys, words, line):
    with pytest.raises(SystemExit) as caught:
        main(["accelerator", *words])
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth accelerator: error: {line}\n"


def test_components_are_sums_of_modules(monkeypatch, tmp_path, capsys):
    """With one gate in each module components are numbers of instances; memories are their bits."""
    measured = []

    def one(part, recipe, library):
        measured.append(part.kind)
        return Figures(area=1.0, cells=1)
    monkeypatch.setattr(accelerator, "measure_unit", one)
    assert main(["accelerator", *SMALL, "--recipe", "generic", "--jobs", "1", "--out", str(tmp_path), "--json",
                 str(tmp_path / "area.json")]) == 0
    data = json.loads((tmp_path / "accelerator.json").read_text())
    assert data == json.loads((tmp_path / "area.json").read_text())
    parts = {part["name"]: part for part in data["components"]}
    assert len(measured) == len(set(data["units"]) - {top for top, unit in data["units"].items()
                                                      if unit["kind"] == "ram"})
    instances = sum(unit["count"] for unit in data["units"].values() if unit["kind"] != "ram")
    assert data["logic"] == instances == sum(part["logic"] for part in parts.values())
    assert data["memories"] == pytest.approx(sum(part["memories"] for part in parts.values()))
    assert data["all"] == pytest.approx(instances + data["memories"]) and data["bit"] is None
    lanes = [unit["count"] for unit in data["units"].values() if unit["kind"] in ("vector_lane", "reduction")]
    assert parts["vector unit"]["logic"] > sum(lanes)
    words = 4096 * 32 * 8 + 8192 * (8 * 8 + 11) + 4096 * 8 * 8 + 512 * 8 * 11 + 512 * 64    # of V, X, W, scales, P
    assert parts["memories"]["bits"] == words
    assert parts["transposer"]["bits"] == 8 * 16 * 8 + 2 * 8 * 11
    assert "vector unit" in capsys.readouterr().out
    assert (tmp_path / "accelerator.png").read_bytes().startswith(b"\x89PNG")


def test_beside_machines_of_other_numbers(monkeypatch, tmp_path, capsys):
    """With an area of its own for each number's elements; memories are those of its widths."""
    monkeypatch.setattr(accelerator, "measure_unit", lambda part, recipe, library: Figures(
        area=100.0 if "fp32" in part.top and part.kind == "group" else 2.0))
    assert main(["accelerator", *SMALL, "--recipe", "generic", "--jobs", "1", "--out", str(tmp_path), "--against",
                 "int8,fp32"]) == 0
    rows = json.loads((tmp_path / "accelerator.json").read_text())["machines"]
    assert list(rows) == ["hbfp8", "int8", "fp32"] and rows["hbfp8"]["all_ratio"] == rows["hbfp8"]["logic_ratio"] == 1
    assert rows["int8"]["memories"] < rows["hbfp8"]["memories"] < rows["fp32"]["memories"]
    for row in rows.values():
        assert row["all"] == pytest.approx(row["logic"] + row["memories"])
        assert row["all_ratio"] == pytest.approx(row["all"] / rows["hbfp8"]["all"])
    out = capsys.readouterr().out
    assert "everything / hbfp8" in out and str(tmp_path / "machines.png") in out.replace("\n", "")
    assert (tmp_path / "machines.png").read_bytes().startswith(b"\x89PNG")


def test_units_of_some_kinds(monkeypatch, tmp_path, capsys):
    """No other is measured, or counts; memories are a kind, too, and memories alone have no logic."""
    measured = []

    def one(part, recipe, library):
        measured.append(part.kind)
        return Figures(area=3.0)
    monkeypatch.setattr(accelerator, "measure_unit", one)
    words = ["accelerator", *SMALL, "--recipe", "generic", "--jobs", "1", "--out", str(tmp_path), "--kinds"]
    assert main([*words, "convert,multiply"]) == 0
    data = json.loads((tmp_path / "accelerator.json").read_text())
    assert sorted(measured) == ["convert", "multiply"] and (data["logic"], data["bits"]) == (6.0, 0)
    assert main([*words, "ram"]) == 0
    data = json.loads((tmp_path / "accelerator.json").read_text())
    assert len(measured) == 2 and data["logic"] == 0 < data["bits"]
    with pytest.raises(SystemExit) as caught:
        main([*words, "converter"])
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("python -m synth accelerator: error: --kinds must be of accelerator, accumulator, ")
    assert error.endswith(", not converter\n")


def test_what_takes_long_is_said(monkeypatch, tmp_path, capsys):
    """One line for a module that is not done after a while, and none for the others."""
    def one(part, recipe, library):
        if part.kind == "fetch":
            time.sleep(0.3)
        return Figures(area=1.0)
    for name, value in (("measure_unit", one), ("SLOW", 0.2), ("LOOK", 0.05)):
        monkeypatch.setattr(accelerator, name, value)
    assert main(["accelerator", *SMALL, "--recipe", "generic", "--jobs", "1", "--out", str(tmp_path)]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "under way" in line] == [
        "hbfp_fetch_l8_b16: under way for 3 minutes"]
