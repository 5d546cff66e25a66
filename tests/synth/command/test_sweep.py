"""``python -m synth sweep``: what is said of wrong lists, and what is written.

Covers: synth/compare/baselines.py, synth/compare/comparison.py, synth/compare/prepare.py, synth/report/html.py.
"""

import json

import pytest

from synth.command import sweep as command
from tests.browser import MISSING, Browser, find


@pytest.mark.parametrize("words, line", [
    (["--group", "4"], "--group 4: must be two numbers such as 8x4"),
    (["--rows", "0"], "--rows 0: must be 1 to 256"),
    (["--against", "fp64"], "--against fp64: must be of fp32, fma, bf16, fp16, int8, int"),
    (["--recipe", "best"], "--recipe best: must be one of area, adders, stock, speed, generic"),
    (["--group", "3x1"], "no combination is a valid design"),
    (["--plan", "all"], "--plan all: must be one of table, denominators, clocks, smaller, study"),
    (["--plan", "denominators", "--against", "int"], "--against int: must name a float for the plan denominators"),
    (["--plan", "clocks", "--recipe", "generic"],
     "--clocks: needs OpenSTA and a cell library: python -m synth fetch"),
    (["--plan", "smaller", "--recipe", "generic"], "--plan smaller: has recipes of its own, take away --recipe"),
    (["--plan", "smaller", "--clocks"], "--plan smaller: has no clocks, take away --clocks"),
    (["--plan", "study", "--rows", "8"], "--plan study: names its designs itself, take away --rows"),
])
def test_wrong_list(capsys, words, line):
    with pytest.raises(SystemExit) as caught:
        command.main(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth sweep: error: {line}\n"


@pytest.mark.synth
def test_small_sweep_writes_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr("synth.tools.library.OSU018", tmp_path / "none.lib")
    words = ["--mantissa", "2", "--rows", "2", "--block", "1x2", "--against", "int", "--jobs", "1"]
    assert command.main([*words, "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "sweep.json").read_text())
    (study,) = found["studies"]
    assert study["report"]["recipe"] == "generic" and study["ratios"]["int"]["core"] < 1
    assert study["baselines"]["int"] in found["baselines"]
    assert len((tmp_path / "sweep.csv").read_text().splitlines()) == 2
    assert "data:image/png;base64," in (tmp_path / "area.html").read_text()
    if find() is None:
        pytest.skip(MISSING)
    browser = Browser(tmp_path / "profile")
    try:
        assert browser.complaints(tmp_path / "area.html") == []
    finally:
        browser.close()


@pytest.mark.synth
@pytest.mark.filterwarnings("ignore")    # Dask's own
def test_workers_of_a_cluster_give_the_same(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("synth.tools.library.OSU018", tmp_path / "none.lib")
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))
    words = ["--mantissa", "2", "--rows", "2", "--block", "1x2", "--against", "int"]
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:
        there = ["--scheduler", cluster.scheduler_address, "--out", str(tmp_path / "there")]
        assert command.main([*words, *there]) == 0
    assert (tmp_path / "build" / "cache").exists()
    assert command.main([*words, "--jobs", "1", "--out", str(tmp_path / "here")]) == 0
    assert (tmp_path / "there/sweep.json").read_bytes() == (tmp_path / "here/sweep.json").read_bytes()


def test_no_scheduler(tmp_path, capsys):
    pytest.importorskip("distributed")
    words = ["--mantissa", "2", "--rows", "2", "--block", "1x2", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as caught:
        command.main([*words, "--scheduler", "nowhere"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == (
        "python -m synth sweep: error: --scheduler nowhere: no Dask scheduler answers there\n")
    assert not list(tmp_path.iterdir())
