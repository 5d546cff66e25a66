"""Two networks that take turns on the Verilated accelerator: compared with PyTorch, cycle by cycle; and the command.

Covers: cosim/accelerator/beside.py, cosim/command/beside.py.
"""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from cosim.accelerator import beside
from cosim.command.run import main
from golden.lower.command import lowered
from hbfp.values import OptionError

from .built import ACCELERATOR, DISPATCHED, LEVEL, opened
from .test_network import MODEL

pytestmark = pytest.mark.cosim


@pytest.fixture
def files(tmp_path):
    """A network of two layers, and one of three."""
    deeper = MODEL.replace("nn.Linear(12, 6))", "nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 5))")
    for name, text in (("one.py", MODEL), ("two.py", deeper)):
        (tmp_path / name).write_text(text)
    return str(tmp_path / "one.py"), str(tmp_path / "two.py")


def test_command(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(beside, "run", partial(beside.run, level=LEVEL))
    path = tmp_path / "run.json"
    assert main([files[0], "--beside", files[1], *DISPATCHED.words(), "--check", "layers", "--quiet", "--latency", "9",
                 "--json", str(path)]) == 0
    assert " changes, " in capsys.readouterr().out
    data = json.loads(path.read_text())
    assert data["passed"] and data["mismatches"] == 0 and data["changes"] >= 3 and data["change_cycles"] > 0
    assert data["cycles"] == round(data["alone"] + data["changes"] * data["change_cycles"])
    for network, outputs in zip(data["networks"], (6, 5), strict=True):
        assert network["compared"] > 2 * 5 * outputs    # of each run
        assert network["cycles"] == network["model_cycles"] > network["alone"]


def test_a_wrong_bit_is_seen(files):
    manifest, device = opened(DISPATCHED)
    device.close()
    programs = [lowered(name, DISPATCHED.share(8), yields=True) for name in files]
    name = next(name for name, tensor in programs[1].program.tensors.items() if tensor.role == "output")
    wrong = np.array(programs[1].expected[name], np.float32)
    wrong.reshape(-1).view(np.uint32)[7] ^= 1
    programs[1] = replace(programs[1], expected=programs[1].expected | {name: wrong})
    found = beside.run(manifest, DISPATCHED, programs, level=LEVEL)
    assert [side.compared.mismatches for side in found.sides] == [0, 2] and all(side.exact for side in found.sides)


@pytest.mark.parametrize("words, line", [
    (ACCELERATOR.words(), "must have --contexts 2, not 1"),
    ([*DISPATCHED.words(), "--waves"], "must not be given with --beside"),
    ([*replace(DISPATCHED, x_words=64).words()],
     "must have half of each memory. X memory must be 64 to 65536 words, not 32")])
def test_what_is_refused(files, words, line, capsys):
    with pytest.raises(SystemExit, match="^2$"):
        main([files[0], "--beside", files[1], *words])
    assert line in capsys.readouterr().err


def test_models_that_cannot_be_lowered(tmp_path):
    path = tmp_path / "none.py"
    path.write_text("x = 1\n")
    with pytest.raises(OptionError, match="^--beside "):
        lowered(str(path), DISPATCHED.share(8), yields=True, name="beside")
