"""Steps that make cores smaller: each side has every freedom so far, and takes what is smallest.

Covers: synth/report/smaller_table.py.
"""

import json
from pathlib import Path

import pytest

from hbfp import describe
from synth.command import sweep as command
from synth.compare import smaller
from synth.compare.comparison import Comparison
from synth.report import smaller_table
from synth.tools.library import Library
from tests.synth.fake import FakeReport
from tests.synth.tiny import ADDING, LIBERTY

LIBRARY = Library("some", Path("some.lib"), 1.0, "")


def areas(cost):
    """Reports of all that is wanted; ``cost`` gives an area of a recipe and a design."""
    return {(recipe, each): FakeReport(cost(recipe, each), each)
            for recipe, designs in smaller.wanted().items() for each in designs}


def by_bits(recipe, design):
    """Less with every step, but for blocks in large groups."""
    area = 100 * design.format.mantissa if design.blocked else 4000
    area -= (10 * (recipe == "adders") + 20 * design.gated + 40 * (design.rows == 64))
    return area + 5 * (design.group[0] == 32) * (1 if design.blocked else -1) - (design.group == (8, 8))


def test_each_side_has_the_same_options_and_its_own_group():
    for step in smaller.STEPS:
        blocks, floats = smaller.designs(step)
        assert [each.format.mantissa for each in blocks] == [4, 6, 8]
        assert {each.group for each in floats} == {(8, 4), (8, 8), blocks[0].group}
        assert {(each.rows, each.cols) for each in floats} == {(32, 32), (blocks[0].rows, blocks[0].cols)}
        mine = [{name: describe.flat(each)[name] for name in ("weight_clock", "multiplier")}
                for each in (*blocks, *floats)]
        assert all(each == mine[0] for each in mine) and mine[0]["multiplier"] == "recoded"
        assert all(each.rows * each.cols == 1024 and each.format.terms == each.rows for each in blocks)
    assert [step.name for step in smaller.STEPS if smaller.designs(step)[0][0].gated] == ["gated", "tall", "groups"]


def test_smallest_so_far_counts():
    found = smaller.Smaller.of(areas(by_bits), LIBRARY).as_dict()
    assert [found[step.name]["hbfp8"] for step in smaller.STEPS] == [800, 790, 770, 730, 730]
    assert [found[step.name]["fp32"] for step in smaller.STEPS] == [3999, 3989, 3969, 3929, 3925]
    assert found["groups"]["fp32_over_hbfp4"] == 3925 / 330
    assert found["before"].keys() == {"hbfp4", "hbfp6", "hbfp8", "fp32", *(f"fp32_over_hbfp{w}" for w in (4, 6, 8)),
                                      "smallest"}
    assert found["tall"]["smallest"]["fp32"] == "fp32_r64_c16_g8x8_recoded_gated"


def test_table_has_a_row_a_step():
    table = smaller_table.table(smaller.Smaller.of(areas(by_bits), LIBRARY))
    assert list(table.columns[0].cells) == [step.title for step in smaller.STEPS]
    assert list(table.columns[-1].cells)[0] == f"[bold]{3999 / 800:.2f}[/bold]"


def test_command_writes_every_library(monkeypatch, tmp_path, capsys):
    paths = [tmp_path / "a.lib", tmp_path / "b.lib"]
    for path in paths:
        path.write_text(ADDING.replace("tiny", path.stem, 1))

    def run(designs, targets, against, *rest):
        return [Comparison(FakeReport(by_bits(recipe, each) + (library.name == "b"), each), {})
                for recipe, library in targets for each in designs]
    monkeypatch.setattr(command.sweep, "run", run)
    words = ["--plan", "smaller", "--liberty", ",".join(map(str, paths)), "--out", str(tmp_path / "out")]
    assert command.main(words) == 0
    data = json.loads((tmp_path / "out" / "smaller.json").read_text())
    assert [data["libraries"][name]["tall"]["hbfp8"] for name in ("a", "b")] == [730, 731]
    assert (data["library"], data["tools"]) == ("a, b", {"yosys": "1"})
    assert capsys.readouterr().out.count("smallest core so far") == 2


def test_library_without_a_full_adder(monkeypatch, tmp_path, capsys):
    (tmp_path / "cells.lib").write_text(LIBERTY)
    with pytest.raises(SystemExit, match="^2$"):
        command.main(["--plan", "smaller", "--liberty", str(tmp_path / "cells.lib")])
    assert capsys.readouterr().err == ("python -m synth sweep: error: --recipe adders: needs a full adder, which tiny "
                                       "does not have\n")
    monkeypatch.setattr("synth.tools.library.OSU018", tmp_path / "none.lib")
    with pytest.raises(SystemExit, match="^2$"):
        command.main(["--plan", "smaller"])
    assert capsys.readouterr().err == ("python -m synth sweep: error: --plan smaller: needs a cell library: python -m "
                                       "synth fetch, or --liberty FILE\n")
