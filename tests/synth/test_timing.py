"""Clock periods need a timer, and say so."""

from synth import timing
from synth.__main__ import main


def test_no_timer_no_periods(monkeypatch, tmp_path):
    monkeypatch.setattr(timing, "LOCAL", tmp_path / "sta")
    monkeypatch.setattr(timing.shutil, "which", lambda command: None)
    assert timing.find() is None
    assert timing.periods(None, "area", None) == {}


def test_local_timer_is_found(monkeypatch, tmp_path):
    (tmp_path / "sta").write_text("")
    monkeypatch.setattr(timing, "LOCAL", tmp_path / "sta")
    monkeypatch.setattr(timing.shutil, "which", lambda command: None)
    assert timing.find() == str(tmp_path / "sta")


def test_timing_of_generic_gates_is_refused(capsys, tmp_path):
    """No library, no delays: said before anything is synthesised."""
    assert main(["--recipe", "generic", "--timing", "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == ("python -m synth: error: --timing: needs OpenSTA and a cell library: "
                                       "python -m synth fetch\n")
    assert not (tmp_path / "out").exists()
