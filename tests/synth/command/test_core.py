"""The command line's complaints: one line, a status, nothing left behind.

Covers: synth/command/options.py.
"""

import pytest

from hbfp.values import OptionError
from synth.__main__ import main
from synth.command.core import make_parser
from synth.command.options import choose_targets, least_area
from tests.synth.tiny import LIBERTY


@pytest.mark.parametrize("words, line", [
    (["--recipe", "best"], "--recipe best: must be one of area, adders, stock, speed, generic"),
    (["--jobs", "0"], "--jobs 0: must be 1 to 4096"),
    (["--against", "fp32,fp64"], "--against fp64: must be of fp32, fma, bf16, fp16, int8, int"),
    (["--mantissa", "99"], "--mantissa 99: must be 2 to 16"),
    (["--memory-access", "-1"], "--memory-access -1: must be 0 to 100"),
    (["--memory-access", "soon"], "--memory-access soon: must be 0 to 100"),
    (["--unit", "encode", "--period", "5"],
     "--unit encode: must be core to meet a clock, and for more than one recipe or library"),
    (["--unit", "encode", "--against", "fp32"],
     "--against fp32: must be left out: --unit encode has no baseline"),
])
def test_wrong_option(capsys, words, line):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth: error: {line}\n"


def test_wrong_liberty(capsys, tmp_path):
    with pytest.raises(SystemExit) as caught:
        main(["--liberty", "no.lib", "--out", str(tmp_path / "out")])
    assert caught.value.code == 2
    assert capsys.readouterr().err == ("python -m synth: error: --liberty no.lib: cannot be read "
                                       "(No such file or directory)\n")
    assert not (tmp_path / "out").exists()


def test_lists_of_libraries_and_recipes(monkeypatch, tmp_path):
    """Every recipe with every library; `all` is what lies in the folder."""
    monkeypatch.setattr("synth.tools.library.OSU018", tmp_path / "osu018_stdcells.lib")
    with pytest.raises(OptionError) as caught:
        choose_targets(None, "all")
    assert str(caught.value) == f"--liberty all: there is none in {tmp_path}: python -m synth fetch"
    paths = [tmp_path / "osu018_stdcells.lib", tmp_path / "tiny.lib"]
    for n, path in enumerate(paths):
        path.write_text(LIBERTY.replace("tiny", f"tiny{n}", 1))
    expected = [("area", "tiny0"), ("area", "tiny1"), ("speed", "tiny0"), ("speed", "tiny1")]
    for words in ("all", ",".join(map(str, paths))):
        assert [(recipe, cells.name) for recipe, cells in choose_targets("area,speed", words)] == expected
    assert choose_targets("generic", "all") == [("generic", None)]


def test_adders_need_a_full_adder(capsys, tmp_path):
    (tmp_path / "cells.lib").write_text(LIBERTY)
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["--recipe", "adders", "--liberty", str(tmp_path / "cells.lib"), "--out", str(tmp_path / "out")])
    assert capsys.readouterr().err == ("python -m synth: error: --recipe adders: needs a full adder, which tiny does "
                                       "not have\n")


def test_recipe_without_library(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("synth.tools.library.OSU018", tmp_path / "none.lib")
    with pytest.raises(SystemExit) as caught:
        main(["--recipe", "area", "--out", str(tmp_path / "out")])
    assert caught.value.code == 2
    assert capsys.readouterr().err == ("python -m synth: error: --recipe area: needs a cell library: "
                                       "python -m synth fetch, or --liberty FILE\n")


@pytest.mark.synth
def test_wrong_unit(capsys, tmp_path):
    with pytest.raises(SystemExit) as caught:
        main(["--unit", "gate", "--recipe", "generic", "--out", str(tmp_path / "out")])
    assert caught.value.code == 2
    assert "--unit gate: must be one of" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_multiplier_of_a_file_is_taken(tmp_path):
    """Reports take the smaller multipliers unless the user says otherwise, wherever that is said."""
    path = tmp_path / "design.toml"
    path.write_text('multiplier = "plain"\n')
    for words, multiplier in (([], "recoded"), (["--config", str(path)], "plain"),
                              (["--multiplier", "plain"], "plain")):
        assert least_area(make_parser().parse_args(words)).multiplier == multiplier
