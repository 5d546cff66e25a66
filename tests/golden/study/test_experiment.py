"""Training runs: resumable to the same bits, alike wherever they run; the command line.

Covers: golden/__main__.py, golden/study/sweep.py, golden/study/tasks.py, golden/study/train_command.py,
golden/study/error_command.py, golden/study/schedule_command.py.
"""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

from golden.__main__ import main  # noqa: E402
from golden.study import experiment, sweep  # noqa: E402
from golden.study.experiment import Run, train  # noqa: E402
from golden.study.tasks import load  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402
from tests import cases  # noqa: E402

HBFP4 = HBFPFormat(mantissa=4, block=(1, 16))
STOCHASTIC = HBFPFormat(mantissa=4, block=(1, 16), rounding="stochastic")


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("seed", [4_294_967, 2 ** 31 - 1])
def test_every_seed_in_range_trains(seed):
    assert train(Run(fmt=HBFP4, epochs=1, batch=500, seed=seed))["digest"]


@pytest.mark.parametrize("options", cases.sweep(2, [
    dict(fmt=STOCHASTIC), dict(fmt=HBFP4, wide=True), dict(fmt=HBFP4, boost=6), dict(fmt=None)]))
def test_killed_between_epochs_it_ends_with_the_same_bits(options, tmp_path):
    run = Run(epochs=3, batch=200, **options)
    whole = train(run)

    def killed_at(stop):
        def progress(epoch):
            if epoch == stop:
                raise Killed
        return progress
    for stop in (1, 2):
        with pytest.raises(Killed):
            train(run, tmp_path, killed_at(stop))
    resumed = train(run, tmp_path)
    assert resumed == whole and len(resumed["curve"]) == 3
    assert [p.suffix for p in tmp_path.iterdir()] == [".json"]
    assert train(run, tmp_path) == whole                       # read, not trained again


@pytest.mark.slow
def test_killed_process_goes_on_to_the_same_bits(tmp_path):
    command = [sys.executable, "-m", "golden", "train", "--mantissa", "4", "--epochs", "6", "--batch", "100", "--out",
               str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("runs/*.pt")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    result = json.loads(next(tmp_path.glob("runs/*.json")).read_text())
    assert result == train(Run(fmt=HBFP4, epochs=6, batch=100))


def test_a_half_written_checkpoint_never_counts(tmp_path, monkeypatch):
    run = Run(epochs=1, batch=400)
    monkeypatch.setattr(os, "replace", lambda a, b: (_ for _ in ()).throw(Killed))
    with pytest.raises(Killed):
        train(run, tmp_path)
    monkeypatch.undo()
    assert train(run, tmp_path) == train(run)


def test_sweep_gives_the_same_on_one_and_two_processes(tmp_path):
    runs = [Run(fmt=fmt, epochs=1, batch=200, seed=seed) for fmt, seed in ((HBFP4, 0), (None, 0), (None, 1))]
    one = sweep.sweep(runs, tmp_path / "one", jobs=1)
    two = sweep.sweep(runs, tmp_path / "two", jobs=2)
    assert one == two == [train(run) for run in runs]
    figures = sweep.summary(one)
    assert list(figures) == ["hbfp4 1x16", "fp32"] and figures["fp32"][2] == 2
    sweep.picture(one, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"


def test_sweep_on_a_dask_cluster_gives_the_same(tmp_path):
    distributed = pytest.importorskip("distributed")
    runs = [Run(fmt=HBFP4, epochs=1, batch=200, seed=seed) for seed in (0, 1)]
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:
        got = sweep.sweep(runs, tmp_path, scheduler=cluster.scheduler_address)
    assert got == [train(run) for run in runs]


def test_wrong_scheduler(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match=r"^--scheduler nowhere: no Dask scheduler answers there$"):
        sweep.sweep([Run(epochs=1)], tmp_path, scheduler="nowhere")


def test_summary_by_hand():
    results = [{"name": "a", "accuracy": v} for v in (1.0, 3.0)] + [{"name": "b", "accuracy": 5.0}]
    assert sweep.summary(results) == {"a": (2.0, 2 ** 0.5, 2), "b": (5.0, 0.0, 1)}


def test_tasks_have_all_classes():
    for name in ("digits", "teacher"):
        x, y, x_test, y_test = load(name)
        assert set(y.tolist()) == set(y_test.tolist()) == set(range(10))
        assert x.isfinite().all() and len(x) == len(y) and len(x_test) == len(y_test) >= 360


def test_names_and_recipes():
    assert Run(fmt=HBFP4, boost=6).name == "hbfp4+6 1x16"
    assert Run(fmt=HBFP4, boost=6, ends=False).name == "hbfp4+6 1x16 boosted: last 1 epochs"
    assert Run(fmt=HBFP4, boost=6, last_epochs=0).name == "hbfp4+6 1x16 boosted: first layer, last layer"
    assert Run(fmt=HBFP4, boost=6, ends=False, last=8, intervals=((3, 5),), last_epochs=0).name == (
        "hbfp4+6 1x16 boosted: epochs 3 to 4, last layer at 8")
    assert Run(fmt=STOCHASTIC, wide=True).name == "hbfp4 1x16 stochastic wide"
    assert Run(task="teacher").epochs == experiment.RECIPES["teacher"][0]
    assert len({Run(seed=0).key, Run(seed=1).key, Run(fmt=None).key}) == 3


@pytest.mark.slow
def test_digits_and_boosting(tmp_path):
    """HBFP8 and HBFP6 within a deviation of FP32; boosting gives HBFP3 a point back."""
    configurations = [(None, 0), (8, 0), (6, 0), (3, 0), (3, 6)]
    runs = [Run(fmt=width and HBFPFormat(mantissa=width, block=(1, 16)), boost=boost, seed=seed)
            for width, boost in configurations for seed in range(5)]
    (fp32, spread, _), (eight, *_), (six, *_), (three, *_), (boosted, *_) = sweep.summary(
        sweep.sweep(runs, tmp_path, jobs=1)).values()
    assert abs(eight - fp32) <= spread and abs(six - fp32) <= spread
    assert boosted - three >= 1


# --- The command line ---------------------------------------------------------------------------


def test_train_command(tmp_path, capsys):
    main(["train", "--mantissa", "4", "--epochs", "1", "--batch", "400", "--out", str(tmp_path)])
    assert "hbfp4 1x16, task digits, seed 0" in capsys.readouterr().out
    main(["train", "--arithmetic", "fp32", "--epochs", "1", "--batch", "400", "--out", str(tmp_path)])
    assert "fp32, task digits" in capsys.readouterr().out


def test_sweep_command(tmp_path, capsys):
    main(["sweep", "--widths", "fp32,3+6", "--seeds", "2", "--epochs", "1", "--batch", "400", "--jobs", "1", "--out",
          str(tmp_path)])
    assert "hbfp3+6 1x16" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "digits.json").read_text())["results"]) == 4
    assert (tmp_path / "digits.png").exists()


def test_error_command(tmp_path, capsys):
    main(["error", "--elements", "100000", "--mantissa", "5", "--out", str(tmp_path)])
    assert "HBFP5" in capsys.readouterr().out
    assert set(json.loads((tmp_path / "error.json").read_text())) == {"4", "5", "6", "8"}
    main(["error", "--prune", "2:4", "--elements", "10000"])
    assert "sparsify, then quantise" in capsys.readouterr().out


def test_schedule_command(capsys):
    main(["schedule"])
    assert "99.70" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, message", [
    (["train", "--mantissa", "17"], "--mantissa 17: must be 2 to 16"),
    (["train", "--seed", "x"], "--seed x: must be 0 to 2147483647"),
    (["train", "--epochs", "-1"], "--epochs -1: must be 0 to 100000"),
    (["train", "--rate", "fast"], "--rate fast: must be 0 to 100"),
    (["sweep", "--task", "cifar"], "--task cifar: must be one of digits, teacher"),
    (["train", "--arithmetic", "int"], "--arithmetic int: must be hbfp or fp32 for training"),
    (["train", "--ends", "no"], "--ends no: has no effect without --boost"),
    (["train", "--boost", "6", "--ends", "maybe"], "--ends maybe: must be one of yes, no"),
    (["train", "--boost", "6", "--intervals", "3"], "--intervals 3: must be pairs of epochs such as 10-12,20-22"),
    (["train", "--mantissa", "4", "--boost", "6", "--epochs", "2", "--intervals", "0-2"],
     "Interval must be two epochs with 0 <= START < STOP <= 2, not 0, 3"),
    (["train", "--boost", "6"], "Boosted width must be the base width of 8 bits or more, not 6"),
    (["train", "--mantissa", "4", "--boost", "6", "--first", "1"], "First layer's width must be 2 to 16 bits, not 1"),
    (["train", "--boost", "1"], "Boosted width must be 2 to 16 bits, not 1"),
    (["train", "--arithmetic", "fp32", "--boost", "6"], "Boost needs an HBFP format, not 6 with FP32"),
    (["sweep", "--widths", "8,4-6"], "--widths 8,4-6: must be fp32, W or W+BOOST (2 to 16), not '4-6'"),
    (["sweep", "--seeds", "0"], "--seeds 0: must be 1 to 10000"),
    (["error", "--prune", "4:2"], "--prune 4:2: must be N:M with N at most M, M 1 to 1024"),
    (["error", "--distribution", "cauchy"],
     "--distribution cauchy: must be one of normal, uniform, laplace"),
    (["train", "--epochs", "1", "--out", "/proc/none"],
     "--out /proc/none/runs: cannot be written (No such file or directory)"),
])
def test_wrong_options(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m golden: error: {message}\n"


def test_wrong_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["dance"])
    assert stop.value.code == 2 and len(capsys.readouterr().err.splitlines()) == 1
