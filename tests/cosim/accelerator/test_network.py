"""Networks on the Verilated accelerator: compared tensor by tensor, told by layer; and the command.

Covers: golden/perf/accelerator/command.py.
"""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from cosim.__main__ import main
from cosim.accelerator import network
from golden.lower.command import lowered
from hbfp.values import OptionError

from .built import ACCELERATOR, LEVEL, opened

pytestmark = pytest.mark.cosim
MODEL = """\
import torch
from torch import nn


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 12), nn.GELU(), nn.Linear(12, 6))


def inputs():
    torch.manual_seed(1)
    return (torch.randn(5, 10),)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MODEL)
    return path


@pytest.fixture(scope="module")
def manifest():
    made, device = opened()
    device.close()
    return made


def test_outputs_and_layers(file, manifest):
    program = lowered(str(file), ACCELERATOR)
    few = network.run(manifest, program, level=LEVEL)
    all_of_them = network.run(manifest, program, layers=True, level=LEVEL)
    assert few.total.compared == 5 * 6 and not few.total.mismatches
    # The GELU works on the product before it is stored, so that theirs is one tensor in DRAM.
    assert all_of_them.total.compared >= 5 * (12 + 6) and not all_of_them.total.mismatches
    assert few.model == few.result.times == all_of_them.result.times
    assert sum(row["cycles"] for row in few.rows) == few.result.cycles
    assert all(row["model_cycles"] == row["cycles"] for row in few.rows)


def test_a_job_of_several_models(tmp_path, manifest):
    path = tmp_path / "job.py"
    one = MODEL.replace("torch.manual_seed(0)", "torch.manual_seed(seed)").replace("model()", "one(seed)")
    path.write_text(one + "\n\ndef model():\n    return [one(seed) for seed in range(3)]\n")
    program = lowered(str(path), ACCELERATOR)
    found = network.run(manifest, program, layers=True, level=LEVEL)
    assert [row["name"] for row in found.rows] == [f"{model}/{layer}" for layer in (0, 2) for model in range(3)]
    assert found.total.compared >= 3 * 5 * (12 + 6) and not found.total.mismatches
    assert found.model == found.result.times
    outputs = [program.expected[name] for name in program.outputs]
    assert len(outputs) == 3 and not np.array_equal(outputs[0], outputs[1])


def test_sums_go_by_the_lanes_of_the_vector_unit(tmp_path, manifest):
    """Norms and softmax of rows of 21 numbers, three words: PyTorch with the side of 8 lanes differs."""
    path = tmp_path / "sums.py"
    path.write_text(MODEL.replace("nn.GELU(), nn.Linear(12, 6)", "nn.LayerNorm(12), nn.Linear(12, 21), nn.Softmax(-1)"))
    program, other = (lowered(str(path), replace(ACCELERATOR, vector_lanes=lanes)) for lanes in (4, 8))
    found = network.run(manifest, program, layers=True, level=LEVEL)
    assert found.total.compared >= 5 * (12 + 12 + 21) and not found.total.mismatches
    assert found.model == found.result.times
    name, = (name for name, tensor in program.program.tensors.items() if tensor.role == "output")
    assert not np.array_equal(program.expected[name], other.expected[name])


def test_a_wrong_bit_is_seen(file, manifest):
    program = lowered(str(file), ACCELERATOR)
    name = next(name for name, tensor in program.program.tensors.items() if tensor.role == "output")
    wrong = np.array(program.expected[name], np.float32)
    wrong.reshape(-1).view(np.uint32)[7] ^= 1
    found = network.run(manifest, replace(program, expected={name: wrong}), level=LEVEL)
    assert (found.total.compared, found.total.mismatches) == (30, 1)
    assert found.total.first[0].startswith(f"{name}: 1 of 30 differ, first at (1, 1): ")


def test_command(file, manifest, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(network, "run", partial(network.run, level=LEVEL))
    names = {name: tmp_path / name for name in ("run.json", "run.png", "trace.json", "run.program")}
    words = ["run", str(file), *ACCELERATOR.words(), "--check", "layers", "--quiet", "--latency", "9", "--bandwidth",
             "20", "--json", str(names["run.json"]), "--timeline", str(names["run.png"]),
             "--trace", str(names["trace.json"]), "--program", str(names["run.program"])]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "numbers compared with PyTorch, 0 differ" in said
    assert "largest distance from PyTorch's own functions: gelu " in said
    data = json.loads(names["run.json"].read_text())
    assert data["mismatches"] == 0 and data["compared"] > 0 and data["cycles"] == data["model_cycles"] > 0
    assert data["macs"] == sum(layer["macs"] for layer in data["layers"]) and 0 < data["utilisation"] < 1
    assert {"name", "cycles", "model_cycles", "macs", "bytes"} <= set(data["layers"][0])
    assert data["distances"].keys() == {"gelu"} and 0 < data["distances"]["gelu"]["largest"] < 1e-6
    assert data["passed"] and data["latency"] == 9 and data["bandwidth"] == 20
    assert data["seconds"] > 0 and data["processor_seconds"] > 0
    assert all(path.stat().st_size for path in names.values())


def test_models_that_cannot_be_lowered(tmp_path):
    path = tmp_path / "none.py"
    path.write_text("x = 1\n")
    with pytest.raises(OptionError, match=f"^MODEL {path}: Model {path} must define model\\(\\)$"):
        lowered(str(path), ACCELERATOR)
