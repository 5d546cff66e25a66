"""``python -m synth corners``: what is said of bad options, and what is told."""

import json

import pytest

from synth.__main__ import main
from synth.command import corners as command
from synth.compare import corners
from synth.measure import timing
from synth.tools import opensta
from tests.synth.tiny import LIBERTY


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with two libraries."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells.lib").write_text(LIBERTY)
    (tmp_path / "slow.lib").write_text(LIBERTY.replace("cell (INV)", "cell (NOT)"))
    return tmp_path


@pytest.mark.parametrize("words, line", [
    (["--wire", "-1"], "--wire -1: must be 0 to 100"),
    (["--recipe", "generic"], "--recipe generic: must be one of area, adders, stock, speed"),
    (["--corners", "slow=slow.lib"], "--corners slow=slow.lib: has no cell INV, which cells.lib has"),
    (["--corners", "slow=no.lib"], "--liberty no.lib: cannot be read (No such file or directory)"),
    (["--corners", "slow.lib"], "--corners slow.lib: must be NAME=FILE, a name once, and none typical"),
    (["--corners", "typical=cells.lib"],
     "--corners typical=cells.lib: must be NAME=FILE, a name once, and none typical"),
    (["--corners", ""], "--corners : must name one at least"),
    ([], "python -m synth corners needs OpenSTA: python -m synth fetch")])
def test_wrong_option(capsys, folder, monkeypatch, words, line):
    monkeypatch.setattr(opensta, "find", lambda: None)
    with pytest.raises(SystemExit) as caught:
        main(["corners", "--liberty", "cells.lib", "--out", "out", *words])
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth corners: error: {line}\n"
    assert not (folder / "out").exists()


def test_table_and_file(capsys, folder, monkeypatch):
    (folder / "slow.lib").write_text(LIBERTY)
    monkeypatch.setattr(opensta, "find", lambda: "sta")
    monkeypatch.setattr(command, "synthesise", lambda designs, targets, jobs, progress: None)
    monkeypatch.setattr(timing, "paths", lambda *args, kinds, timed, wire, **more: {
        kinds[0]: timing.Path(1.25 + wire + 2 * (timed.path.name == "slow.lib"), "a", "b", [])})
    assert main(["corners", "--pipeline", "2", "--liberty", "cells.lib", "--corners", "slow=slow.lib", "--wire", "0.5",
                 "--out", "out", "--json", "mine.json"]) == 0
    rows = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["typical", "0", "1.25", "800", "core"], ["typical", "0.5", "1.75", "571", "core"],
        ["slow", "0", "3.25", "308", "core"], ["slow", "0.5", "3.75", "267", "core"]]
    data = json.loads((folder / "out" / "corners.json").read_text())
    assert data == json.loads((folder / "mine.json").read_text())
    assert data["corners"]["slow"]["wires"]["ns"] == 3.75
    assert data["corners"][corners.TYPICAL]["none"]["mhz"] == 800
