"""The tuner: jobs give the table of models one by one, a killed search ends with the same table, bad files are refused.

Covers: golden/study/tune.py, golden/study/tune_command.py, golden/study/tune_jobs.py, golden/study/tune_model.py,
golden/study/tune_picture.py, golden/study/zoo/digits.py.
"""

import json
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402

from golden.nn import fused  # noqa: E402
from golden.study import tune as module  # noqa: E402
from golden.study.tune import tune  # noqa: E402
from golden.study.tune_jobs import most_together  # noqa: E402
from golden.study.tune_model import Model, ModelError, Search  # noqa: E402
from golden.study.zoo import digits  # noqa: E402
from tests.cases import sweep  # noqa: E402

SMALL = """
import torch
from torch import nn
BATCH = 16

def data():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(128, 6, generator=g)
    y = (x[:, 0] * x[:, 1] > 0).long()
    return x[:64], y[:64], x[64:], y[64:]

def model(trial):
    hidden = trial.suggest_categorical("hidden", [8, 12])
    return nn.Sequential(nn.Linear(6, hidden), nn.Tanh(), nn.Dropout(0.1), nn.Linear(hidden, 2))

def optimiser(trial, parameters):
    return torch.optim.Adam(parameters, trial.suggest_float("rate", 1e-3, 0.3, log=True))
"""


@pytest.fixture
def small(tmp_path):
    (tmp_path / "small.py").write_text(SMALL)
    return Search(model=str(tmp_path / "small.py"), trials=8, epochs=3, together=5, mantissas=(4, 8),
                  roundings=("rne", "stochastic"))


def table(folder):
    return (folder / "search.json").read_text()


def test_jobs_give_the_table_of_models_one_by_one(small, tmp_path, monkeypatch):
    lines = []
    tune(small, tmp_path / "jobs", report=lines.append)
    assert sum(line.endswith(": one job") for line in lines) > 1
    monkeypatch.setattr(fused, "fuse", lambda nets: (_ for _ in ()).throw(ValueError("no reason")))
    lines.clear()
    tune(small, tmp_path / "alone", report=lines.append)
    assert sum(line.endswith(": one by one; no reason") for line in lines) > 1
    assert table(tmp_path / "alone") == table(tmp_path / "jobs")
    rows = json.loads(table(tmp_path / "jobs"))["trials"]
    assert {row["state"] for row in rows} == {"complete", "pruned"} and len(rows) == 8
    assert all((row["value"], row["epochs"]) == (row["curve"][-1], len(row["curve"])) for row in rows)


def test_best_accuracy_first_however_long_it_took():
    def trial(number, *values):
        state = TrialState.COMPLETE if len(values) == 3 else TrialState.PRUNED
        return SimpleNamespace(number=number, intermediate_values=dict(enumerate(values, 1)), state=state, params={})
    rows = module.ranked([trial(0, 30.0, 40.0, 43.75), trial(1, 50.0), trial(2, 10.0), trial(3, 20.0, 30.0, 50.0)])
    assert [row["number"] for row in rows] == [1, 3, 0, 2]


@pytest.mark.parametrize("place", sweep(3, ["while saving", "before telling", "after telling"]))
def test_stopped_search_ends_with_the_same_table(small, tmp_path, monkeypatch, place):
    tune(small, tmp_path / "whole")
    tell, replacing = module._tell, module.files.replacing
    calls = 0

    def stop():
        nonlocal calls
        calls += 1
        if calls % 2 == 0:
            raise KeyboardInterrupt

    def stopping_tell(*arguments):
        if place == "before telling":
            stop()
        done = tell(*arguments)
        if place == "after telling":
            stop()
        return done

    def stopping_replacing(path):
        if place == "while saving" and path.name == "round.pt":
            stop()
        return replacing(path)
    monkeypatch.setattr(module, "_tell", stopping_tell)
    monkeypatch.setattr(module.files, "replacing", stopping_replacing)
    stops = 0
    while not (tmp_path / "parts/search.json").exists():
        try:
            tune(small, tmp_path / "parts")
        except KeyboardInterrupt:
            stops += 1
    assert stops > 2 and table(tmp_path / "parts") == table(tmp_path / "whole")
    assert not (tmp_path / "parts/round.pt").exists()


@pytest.mark.slow
def test_killed_search_ends_with_the_same_table(small, tmp_path):
    command = [sys.executable, "-m", "golden", "tune", "--model", small.model, "--trials", "10", "--together", "7",
               "--epochs", "6", "--search", "random", "--out"]
    subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True)
    kills = 0
    while True:
        try:                                           # run() ends a process that takes too long with SIGKILL
            run = subprocess.run([*command, tmp_path / "parts"], capture_output=True, timeout=3 + 2 * kills)
            break
        except subprocess.TimeoutExpired:
            kills += 1
    assert (run.returncode, run.stderr) == (0, b"")
    assert kills and table(tmp_path / "parts") == table(tmp_path / "whole")


def test_what_cannot_be_fused_is_named(small, tmp_path):
    path = tmp_path / "drop.py"
    path.write_text(SMALL.replace("nn.Dropout(0.1)", "nn.AlphaDropout(0.1)").replace("[8, 12]", "[8]"))
    lines = []
    tune(Search(model=str(path), trials=2, epochs=1, together=2, search="random", seed=3), tmp_path / "out",
         report=lines.append)
    line, = lines
    assert line == ("trials 0, 1: one by one; AlphaDropout at '2' draws from torch's one generator, in another order "
                    "in a job; golden.nn.fused.SeededDropout has its own")


def test_jobs_fit_memory(small, tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8))
    own = 4 * (6 * 8 + 8 + 16)
    before = [buffer.clone() for buffer in net.buffers()]
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel() * t.element_size()) or t,
                                                  lambda t: t):
        net(torch.randn(16, 6))
    for buffer, old in zip(net.buffers(), before, strict=True):
        buffer.copy_(old)
    one = 4 * own + 3 * (sum(sizes) + 4 * 16 * 8)
    assert [most_together(net, torch.randn(16, 6), memory) for memory in (1, 3 * one - 1, 3 * one)] == [1, 2, 3]
    assert all(torch.equal(*pair) for pair in zip(net.buffers(), before, strict=True))
    lines = []
    tune(small, tmp_path / "out", memory=1, report=lines.append)
    assert not any("job" in line for line in lines)


@pytest.mark.parametrize("source, message", [
    ("def data() pass", "SyntaxError: expected ':' (bad.py, line 1)"),
    ("raise OSError('gone')", "OSError: gone"),
    ("def data(): pass", "must define a function model"),
    ("def model(trial): pass", "must define a function data"),
    (SMALL + "BATCH = 0", "BATCH must be a whole number from 1, not 0"),
    (SMALL + "def data(): return 1,", "data() must return four tensors: inputs and classes, twice"),
    (SMALL + "def data(): 1 / 0", "data(): ZeroDivisionError: division by zero"),
    (SMALL + "def model(trial): return 3", "model(trial) must return a torch.nn.Module, not int"),
    (SMALL + "def model(trial): raise KeyError('a')", "model(trial): KeyError: 'a'"),
    (SMALL + "def optimiser(trial, parameters): return 3",
     "optimiser(trial, parameters) must return a torch.optim.Optimizer, not int"),
    (SMALL + "def model(trial): return nn.Linear(5, 2)",
     "forward: RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x6 and 5x2)")])
def test_bad_files_are_refused_in_one_line(tmp_path, source, message):
    path = tmp_path / "bad.py"
    path.write_text(source)
    with pytest.raises(ModelError, match=f"^{re.escape(f'--model {path}: {message}')}$"):
        tune(Search(model=str(path), trials=1, epochs=1, mantissas=(0,)), tmp_path / "out")


def test_folder_of_another_search_is_refused(small, tmp_path):
    tune(Search(model=small.model, trials=1, epochs=1), tmp_path / "out")
    with pytest.raises(ModelError, match=f"^--out {re.escape(str(tmp_path))}/out: holds a search with another epochs; "
                                         "choose another folder or remove it$"):
        tune(Search(model=small.model, trials=1, epochs=2), tmp_path / "out")


def test_formats_of_any_kind(small, tmp_path):
    search = replace(small, formats=("fp32", "hbfp4-sr", "mxfp4"), trials=6, epochs=1)
    rows = tune(search, tmp_path / "out")
    assert {row["params"]["format"] for row in rows} == {"fp32", "hbfp4-sr", "mxfp4"}
    assert not {"mantissa", "rounding"} & rows[0]["params"].keys()


def test_zoo_and_command(tmp_path, capsys):
    from golden.__main__ import main
    assert Model("digits").batch == digits.BATCH
    assert main(["tune", "--trials", "2", "--epochs", "1", "--out", str(tmp_path / "out")]) == 0
    assert re.search(r"The ten best of 2 trials.*\nbest: trial \d with [\d.]+ % after 1 epochs: .*\nall trials "
                     r"\S+/search.json, picture \S+/tune.png, Optuna's storage \S+/study.journal\n$",
                     capsys.readouterr().out, re.S)
    assert (tmp_path / "out/tune.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("options, message", [
    (["--model", "/nope.py"], "--model /nope.py: must be digits or a Python file"),
    (["--mantissa", "4,1"], "--mantissa 4,1: must be 0 or 2 to 16"),
    (["--search", "grid"], "--search grid: must be one of random, halving, hyperband"),
    (["--rounding", "up"], "--rounding up: must be of rne, stochastic, truncate"),
    (["--formats", "hbfp6", "--mantissa", "4"], "--mantissa 4: has no effect with --formats"),
    (["--block", "0"], "--block 0: must be 1 to 1024"), (["--trials", "x"], "--trials x: must be 1 to 1000000")])
def test_bad_options(tmp_path, capsys, options, message):
    from golden.__main__ import main
    with pytest.raises(SystemExit, match="^2$"):
        main(["tune", "--out", str(tmp_path / "out"), *options])
    assert capsys.readouterr().err == f"python -m golden: error: {message}\n"
