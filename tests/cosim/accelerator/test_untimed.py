"""Networks on the golden machine in place of the Verilog."""

import json
from dataclasses import replace

from torch import nn, randn

from cosim.__main__ import main
from cosim.accelerator import untimed
from golden.lower.lowering import lower
from hbfp.isa.registers import Cause

from .built import ACCELERATOR


def network():
    return lower(nn.Sequential(nn.Linear(10, 12), nn.GELU(), nn.Linear(12, 6)), (randn(5, 10),), ACCELERATOR)


def test_outputs_and_layers():
    made = network()
    assert untimed.run(made).total.compared == 5 * 6
    every = untimed.run(made, layers=True)
    assert every.total.compared >= 5 * (12 + 6) and not every.total.mismatches and not every.rows


def test_a_difference_and_an_error_are_found():
    made = network()
    (name,) = made.outputs
    made.expected[name] = made.expected[name] + 1
    assert untimed.run(made).total.mismatches == 5 * 6
    made.program = replace(made.program, instructions=made.program.instructions[:-1], layers=())
    found = untimed.run(made)
    assert found.result.cause == Cause.END and not found.tensors


def test_command(tmp_path, capsys):
    path, data = tmp_path / "mine.py", tmp_path / "a.json"
    path.write_text("import torch\n\n\ndef model():\n    return torch.nn.Linear(9, 4)\n\n\ndef inputs():\n"
                    "    return (torch.ones(3, 9),)\n")
    assert main(["run", str(path), "--machine", "--quiet", "--json", str(data)]) == 0
    found = json.loads(data.read_text())
    assert (found["compared"], found["mismatches"], found["macs"], found["passed"]) == (12, 0, 3 * 9 * 4, True)
    assert "cycles" not in found and "12 numbers compared with PyTorch, 0 differ;" in capsys.readouterr().out
