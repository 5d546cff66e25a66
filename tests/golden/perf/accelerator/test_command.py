"""The command line of the cycle model: what is refused, and the table's data."""

import json

import pytest

from golden.__main__ import main


@pytest.mark.parametrize("words, message", [
    (["--latency", "0"], "--latency 0: must be 1 to 100000"),
    (["--bandwidth", "x"], "--bandwidth x: must be 1 to 4096"),
    (["--rows", "12", "--cols", "12"], "--rows 12: must be one of 8, 16, 32 in an accelerator"),
    (["--json", "/no/such/folder/file"],
     "--json /no/such/folder/file: cannot be written (No such file or directory)")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["perf", "x", *words])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m golden: error: {message}\n"


def test_table(tmp_path, capsys):
    file, out = tmp_path / "mine.py", tmp_path / "perf.json"
    file.write_text("import torch\n\n\ndef model():\n    return torch.nn.Linear(16, 8)\n\n\n"
                    "def inputs():\n    return (torch.ones(4, 16),)\n")
    assert main(["perf", str(file), "--rows", "8", "--cols", "8", "--block", "1,8", "--json", str(out)]) == 0
    data = json.loads(out.read_text())
    assert data["cycles"] == data["model_cycles"] == sum(layer["model_cycles"] for layer in data["layers"])
    assert data["macs"] == 4 * 16 * 8 and data["layers"][0]["bytes"] > 0
    assert data["layers"][0]["scale_sim"] == data["scale_sim"] == (2 * 8 + 8 + 4 - 2) * 2 - 1
    assert "cycle model" in capsys.readouterr().out


JOB = """
import torch

def model():
    return [torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.{last}()) for _ in range(2)]

def inputs():
    return (torch.ones(4, 16),)
"""


def test_a_job(tmp_path):
    file, out = tmp_path / "job.py", tmp_path / "perf.json"
    file.write_text(JOB.format(last="Tanh"))
    assert main(["perf", str(file), "--rows", "8", "--cols", "8", "--block", "1,8", "--json", str(out)]) == 0
    data = json.loads(out.read_text())
    assert [layer["name"] for layer in data["layers"]] == ["0/0", "1/0", "0/1", "1/1"]
    assert data["macs"] == 2 * 4 * 16 * 8


def test_a_job_that_cannot_be_lowered(tmp_path, capsys):
    file = tmp_path / "job.py"
    file.write_text(JOB.format(last="LogSigmoid"))
    with pytest.raises(SystemExit) as stop:
        main(["perf", str(file), "--rows", "8", "--cols", "8", "--block", "1,8"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        f"python -m golden: error: --model {file}: Model 0 of the job: Layer '1' (log_sigmoid) cannot be lowered: the "
        "accelerator has no such operation; a model without it, or exclude it and run that part on the host, would "
        "do\n")
