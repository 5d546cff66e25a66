"""The main job: its closing table, and how it ends when a step fails.

Covers: flow/__main__.py.
"""

import json
from pathlib import Path

import pytest
from rich.console import Console

from flow.__main__ import StepError, main, no_accelerator, run_step, summarise
from hbfp.design import Design
from hbfp.manifest import Manifest

MANIFEST = Manifest(verilog="core.v", top="core")
COSIM = {"outcomes": [{"compared": 1000, "mismatches": 1, "cycles": 20}, {"compared": 5, "mismatches": 0, "cycles": 7}]}
SYNTH = {"report": {"scopes": {"core": 600.4}, "library": {"name": "osu018"}, "design": {"multiplier": "recoded"}},
         "ratios": {"fp32": {"core": 8.654, "element": 9.1}}}
NETWORK = {"model": "mlp", "compared": 1234, "mismatches": 2, "cycles": 5678, "utilisation": 0.8126}


def test_table_adds_up_all_benches(tmp_path):
    rows = dict(summarise(tmp_path, MANIFEST, COSIM, SYNTH, NETWORK))
    assert rows["outputs compared"] == "1,005" and rows["mismatches"] == "1" and rows["cycles simulated"] == "27"
    assert rows["FP32 core / this core"] == "8.65 x (elements alone 9.10 x)"
    assert rows["core, a MAC"] == "600 NAND2-equivalents, memories and side unit apart; recoded multipliers"


def test_table_says_what_was_drawn(tmp_path):
    assert dict(summarise(tmp_path, MANIFEST, COSIM, SYNTH, NETWORK))["pictures"] == "none"
    (tmp_path / "digits.png").touch()
    assert dict(summarise(tmp_path, MANIFEST, COSIM, SYNTH, NETWORK))["pictures"] == str(tmp_path / "digits.png")


def test_table_shows_a_network(tmp_path):
    rows = dict(summarise(tmp_path, MANIFEST, COSIM, SYNTH, NETWORK))
    assert rows["network on the accelerator"] == ("mlp: 1,234 numbers compared with PyTorch, 2 differ; 5,678 cycles, "
                                                  "81.3% of the array")
    assert rows["reports"].endswith("network.json")


def test_table_says_why_no_accelerator_has_the_core(tmp_path):
    why = no_accelerator(Design(rows=32, cols=16))
    rows = dict(summarise(tmp_path, MANIFEST, COSIM, SYNTH, why))
    assert rows["network on the accelerator"] == "none: Cols 16 must be 32, as many as rows, in an accelerator"
    assert not rows["reports"].endswith("network.json")
    assert no_accelerator(Design()) is None


def test_failing_step_stops_the_job(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.executable", "false")
    with pytest.raises(StepError, match=r"^Generate: python -m gen --rows 1 ended with status 1$"):
        run_step(Console(quiet=True), "Generate", "gen", ["--rows", "1"], tmp_path / "manifest.json")


def test_step_that_refuses_its_input_has_said_so(capfd, tmp_path):
    with pytest.raises(SystemExit) as ended:
        run_step(Console(quiet=True), "Generate", "gen", ["--rows", "0"], tmp_path / "manifest.json")
    assert ended.value.code == 2
    assert capfd.readouterr().err == "python -m gen: error: --rows 0: must be 1 to 256\n"


def test_step_returns_its_json(tmp_path):
    data = run_step(Console(quiet=True), "Generate", "gen", ["--rows", "1", "--out", str(tmp_path)],
                    tmp_path / "manifest.json")
    assert data == json.loads(Path(tmp_path / "manifest.json").read_text())


def test_wrong_rows(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--rows", "257"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "python -m flow: error: --rows 257: must be 1 to 256\n"
