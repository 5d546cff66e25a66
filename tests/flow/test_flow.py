"""The main job: what it tells after each step, and how it ends when a step fails.

Covers: flow/__main__.py.
"""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from flow.__main__ import StepError, area_rows, core_rows, main, network_rows, no_accelerator, run_step, work
from hbfp.design import Design
from hbfp.manifest import Manifest

MANIFEST = Manifest(verilog="core.v", top="core")
COSIM = {"outcomes": [{"compared": 1000, "mismatches": 1, "cycles": 20}, {"compared": 5, "mismatches": 0, "cycles": 7}]}
SYNTH = {"report": {"scopes": {"core": 600.4}, "library": {"name": "osu018"}, "design": {"multiplier": "recoded"}},
         "ratios": {"fp32": {"core": 8.654, "element": 9.1}}}
NETWORK = {"model": "mlp", "compared": 1234, "mismatches": 2, "cycles": 5678, "utilisation": 0.8126}


def test_rows_add_up_all_benches():
    assert core_rows(COSIM) == [("cycles simulated", "27"), ("outputs compared with the golden model", "1,005"),
                                ("outputs that differ", "1")]
    assert dict(area_rows(SYNTH)) == {
        "core, a multiply-accumulate": "600 NAND2-equivalents", "multipliers": "recoded",
        "not counted": "memories, side unit", "FP32 core over this core": "8.65", "FP32 elements over these": "9.10"}
    assert "FP32 core over this core" not in dict(area_rows(SYNTH | {"ratios": {}}))


def test_rows_of_a_network_or_why_there_is_none():
    assert network_rows(NETWORK) == [
        ("network on the accelerator", "mlp"), ("numbers compared with PyTorch", "1,234"), ("numbers that differ", "2"),
        ("cycles", "5,678, the array multiplies in 81.3% of them")]
    assert network_rows(no_accelerator(Design(cols=64))) == [
        ("network on the accelerator", "none: Cols 64 must be one of 4, 8, 16, 32 in an accelerator")]
    assert no_accelerator(Design()) is None


@pytest.fixture
def told(monkeypatch, tmp_path):
    """What the job prints on 80 columns with steps that only write their files, into a folder with a long name."""
    results = {"Generate": MANIFEST.as_dict(), "Co-simulate": COSIM, "Run a network": NETWORK, "Measure": SYNTH}
    folder, text = tmp_path / ("long" * 20) / "name", io.StringIO()
    folder.mkdir(parents=True)

    def step(console, title, module, words, result):
        console.print(f"step {title}")
        result.write_text(json.dumps(results[title]))
        (folder / "core.v").touch()
        return results[title]

    monkeypatch.setattr("flow.__main__.run_step", step)
    monkeypatch.setattr("flow.__main__.Console", lambda: Console(file=text, width=80))

    def run(design):
        work([], design, folder)
        return text.getvalue(), folder
    return run


def test_core_comes_first_then_what_takes_minutes(told):
    text, _ = told(Design())
    assert [line[5:] for line in text.splitlines() if line.startswith("step ")] == [
        "Generate", "Co-simulate", "Run a network", "Measure"]
    assert text.index("step Co-simulate") < text.index("outputs compared") < text.index("step Run a network")
    assert text.index("step Run a network") < text.index("compared with PyTorch") < text.index("step Measure")


def test_lines_fit_and_paths_are_whole(told):
    text, folder = told(Design(cols=64))
    paths = [line for line in text.splitlines() if line.startswith("/")]
    assert paths == [str(folder / name) for name in ("core.v", "manifest.json", "cosim.json")] + [
        str(folder), str(folder / "synth.json")]
    assert max(len(line) for line in text.splitlines() if line not in paths) <= 80 and "…" not in text


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
