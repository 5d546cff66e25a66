"""``python -m golden layers``: a model from a file, its figures and its picture.

Covers: golden/study/layers_command.py.
"""

import json
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("optuna")

from matplotlib.image import imread  # noqa: E402

from golden.__main__ import main  # noqa: E402
from golden.nn.operand_errors import Errors, OperandError  # noqa: E402
from golden.study.layers import ModelError, examine, picture  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402

FILE = """
import torch

BATCH = 3


def data():
    x = torch.arange(20.0).reshape(5, 4)
    classes = torch.tensor([0, 1, 0, 1, 0])
    return x, classes, x, classes


def model(trial):
    trial.suggest_float("slope", 0.1, 1.0)
    return torch.nn.Linear(4, trial.suggest_categorical("classes", [2, 3]))
"""
FMT = HBFPFormat(mantissa=4, block=(1, 4))


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def weights(mine, **options):
    return next(each for each in examine(str(mine), FMT, **options).operands if each.role == "w")


def test_one_batch_with_its_gradients(mine):
    found = examine(str(mine), FMT, params={"classes": 3})
    assert [(each.product, each.role, each.elements) for each in found.operands] == [
        ("y", "x", 12), ("y", "w", 12), ("gw", "g", 9), ("gw", "x", 12)]
    assert found.operands[0].signal == sum(i * i for i in range(12))


def test_parameters_and_seed(mine):
    assert weights(mine, params={"classes": 2}).elements == 8 and weights(mine, params={"classes": 3}).elements == 12
    first, again, other = (weights(mine, params={"classes": 2}, seed=seed).signal for seed in (1, 1, 2))
    assert first == again != other


def test_checkpoint(mine, tmp_path):
    torch.save({"weight": torch.full((2, 4), 3.0), "bias": torch.zeros(2)}, tmp_path / "net.pt")
    assert weights(mine, params={"classes": 2}, checkpoint=tmp_path / "net.pt").signal == 8 * 9


def test_command(mine, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["layers", "--model", str(mine), "--params", "classes=2", "--mantissa", "4", "--block", "1,4", "--out",
                 str(out)]) == 0
    printed = capsys.readouterr().out
    found = examine(str(mine), FMT, params={"classes": 2})
    assert printed == f"{found}\nfigures {out}/layers.json, picture {out}/layers.png\n"
    assert (out / "layers.json").read_text() == found.json() + "\n"
    assert imread(out / "layers.png").shape[1] == 1300
    assert len(json.loads(found.json())["operands"]) == 4


def operands(*exponents):
    return Errors([OperandError("a.layer", "linear", "hbfp4 (1, 4)", "y", role, elements=8, nonzero=8, saturated=1,
                                flushed=2, signal=9.0, noise=noise, exponents=each)
                   for role, each, noise in zip("xwg", exponents, (0.1, 0.0, 20.0), strict=False)])


def test_picture_shows_exponents(tmp_path):
    """Also of exact operands, of noise above the signal, and where all blocks are zeros."""
    picture(operands({-3: 5}, {2: 7}, {}), tmp_path / "a.png", "title")
    picture(operands({-3: 5}, {1: 1, 2: 6}, {}), tmp_path / "b.png", "title")
    a, b = imread(tmp_path / "a.png"), imread(tmp_path / "b.png")
    assert a.shape == b.shape and not np.array_equal(a, b)


def test_picture_has_an_end(tmp_path):
    with pytest.raises(ModelError, match="^A picture has at most 1500 operands, not 1501; the table has all$"):
        picture(Errors(operands({0: 1}).operands * 1501), tmp_path / "a.png", "title")


@pytest.mark.parametrize("options, message", [
    (["--model", "/nope.py"], "--model /nope.py: must be digits or a Python file"),
    (["--params", "classes"], "--params classes: must be name=value"),
    (["--params", "width=2"], "--params width=2: must be of slope, classes"),
    (["--params", "slope=2.5"], "--params slope=2.5: must be one of the values that model(trial) allows"),
    (["--params", "classes=4"], "--model {mine}: model(trial): ValueError: '4' not in (2, 3)."),
    (["--seed", "x"], "--seed x: must be 0 to 2147483647"),
    (["--rounding", "stochastic"], "--rounding stochastic: must be rne or truncate: models run in evaluation mode"),
    (["--accumulate", "aligned"], "--accumulate aligned: has no effect on errors of layers"),
    (["--checkpoint", "/nope.pt"], "--checkpoint /nope.pt: ")])
def test_bad_options(mine, tmp_path, capsys, options, message):
    with pytest.raises(SystemExit, match="^2$"):
        main(["layers", "--model", str(mine), "--out", str(tmp_path / "out"), *options])
    error = capsys.readouterr().err
    assert error.startswith(f"python -m golden: error: {message.format(mine=mine)}") and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_checkpoint_of_another_model(mine, tmp_path, capsys):
    torch.save({"weight": torch.ones(1)}, tmp_path / "net.pt")
    with pytest.raises(SystemExit, match="^2$"):
        main(["layers", "--model", str(mine), "--checkpoint", str(tmp_path / "net.pt"), "--out", str(tmp_path / "out")])
    assert re.fullmatch(rf"python -m golden: error: --checkpoint {tmp_path}/net.pt: \w+: .*\n", capsys.readouterr().err)
