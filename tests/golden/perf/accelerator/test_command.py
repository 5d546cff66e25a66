"""The command line of the cycle model: what is refused, and the table's data."""

import json

import pytest

from golden.__main__ import main
from golden.perf.accelerator.energy import measured
from golden.perf.prices import NAND2
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator


@pytest.mark.parametrize("words, message", [
    (["--latency", "0"], "--latency 0: must be 1 to 100000"),
    (["--bandwidth", "x"], "--bandwidth x: must be 1 to 4096"),
    (["--rows", "12", "--cols", "12"], "--rows 12: must be one of 4, 8, 16, 32, 64, 128, 256 in an accelerator"),
    (["--json", "/no/such/folder/file"],
     "--json /no/such/folder/file: cannot be written (No such file or directory)"),
    (["--area", "/no/such/file"], "--area /no/such/file: cannot be read (No such file or directory)"),
    (["--constants", "x"], "--constants x: needs --area FILE")])
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
    assert data["bytes"] == sum(layer["bytes"] for layer in data["layers"]) > 0
    assert data["macs"] == 4 * 16 * 8 and data["layers"][0]["bytes"] > 0
    assert data["layers"][0]["scale_sim"] == data["scale_sim"] == (2 * 8 + 8 + 4 - 2) * 2 - 1
    assert "cycle model" in capsys.readouterr().out


def test_estimate(tmp_path, capsys):
    """With an area: throughput on it and energies, by layer and in sum, in the table and the JSON."""
    file, out, area = tmp_path / "mine.py", tmp_path / "perf.json", tmp_path / "area.json"
    file.write_text("import torch\n\n\ndef model():\n    return torch.nn.Sequential(torch.nn.Tanh(), "
                    "torch.nn.Linear(16, 8))\n\n\ndef inputs():\n    return (torch.ones(4, 16),)\n")
    system = Accelerator(core=Design(rows=8, cols=8, format=HBFPFormat(block=(1, 8))))
    area.write_text(json.dumps({"system": system.as_dict(), "logic": 1e6, "memories": 0.0, "library": None,
                                "recipe": "area", "components": [{"name": "elements", "logic": 64 * NAND2["hbfp8"]}]}))
    words = ["--rows", "8", "--cols", "8", "--block", "1,8", "--json", str(out), "--area", str(area)]
    assert main(["perf", str(file), *words]) == 0
    data, text = json.loads(out.read_text()), capsys.readouterr().out
    assert "Throughput by area, and energy: an estimate" in text and "0.49 mm2 at 1 GHz" in text
    assert "recipe area, with normal numbers" in (said := " ".join(text.split())) and "this one has --block 1,8" in said
    function, product = data["layers"]
    assert product["gmacs_mm2"] == pytest.approx(512 / product["cycles"] / 0.49) and function["gmacs_mm2"] is None
    assert product["energy_pj"]["array"] == pytest.approx(measured("hbfp8", 1) * 4 * 2 * 64)    # 4 rows, 2 passes
    assert data["estimate"]["energy_uj"] == pytest.approx(sum(layer["energy_uj"] for layer in data["layers"]))
    assert data["constants"]["dram_pj"]["unit"] == "pJ a byte of DRAM" and data["area"]["mm2"] == pytest.approx(0.49)
    constants = tmp_path / "mine.toml"
    constants.write_text("dram_pj = -1\n")
    with pytest.raises(SystemExit):
        main(["perf", str(file), *words, "--constants", str(constants)])
    assert capsys.readouterr().err == (f"python -m golden: error: --constants {constants}: dram_pj must be a number "
                                       "above 0 and below 1e12, not -1\n")


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
    assert [layer["name"] for layer in data["layers"]] == ["0/0", "1/0"]    # the function works on the product
    assert data["macs"] == 2 * 4 * 16 * 8


def test_a_job_that_cannot_be_lowered(tmp_path, capsys):
    file = tmp_path / "job.py"
    file.write_text(JOB.format(last="RReLU"))
    with pytest.raises(SystemExit) as stop:
        main(["perf", str(file), "--rows", "8", "--cols", "8", "--block", "1,8"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        f"python -m golden: error: MODEL {file}: Model 0 of the job: Layer '1' (rrelu) cannot be lowered:"
        " the accelerator has no such operation; a model without it would do\n")


TRAINING = """\
import torch


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


def loss(output, target):
    return torch.nn.functional.mse_loss(output, target)


def batches():
    yield torch.ones(4, 16), torch.ones(4, 3)


def optimiser(parameters):
    return torch.optim.SGD(parameters, lr=0.1)
"""


def test_a_step_of_training(tmp_path, capsys):
    """Parts add up to layers, and these to the step; a network alone is no training."""
    file, out = tmp_path / "mine.py", tmp_path / "perf.json"
    file.write_text(TRAINING)
    words = ["perf", str(file), "--train", "--rows", "8", "--block", "1,8"]
    assert main([*words, "--json", str(out)]) == 0
    data = json.loads(out.read_text())
    assert [part["name"] for part in data["parts"]] == ["forward", "backward", "gx", "gw", "update"]
    for name in ("cycles", "macs", "bytes", "multiplying"):
        assert sum(part[name] for part in data["parts"]) == sum(layer[name] for layer in data["layers"])
    assert data["cycles"] == sum(part["cycles"] for part in data["parts"])
    assert data["macs"] == 2 * 4 * (16 * 8 + 8 * 3) + 4 * 8 * 3
    assert all(part["utilisation"] <= 1 for part in data["parts"])
    assert "update" in capsys.readouterr().out
    file.write_text("import torch\n\n\ndef model():\n    return torch.nn.Linear(16, 8)\n")
    with pytest.raises(SystemExit):
        main(words)
    assert "loss" in capsys.readouterr().err
