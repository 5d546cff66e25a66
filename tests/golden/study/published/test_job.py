"""A format's seeds: killed at any step the bits are those of a run that was not; together or alone they are the same.

Covers: golden/study/published/job.py.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from golden.study.published import generate  # noqa: E402
from golden.study.published.data import load  # noqa: E402
from golden.study.published.formats import Format  # noqa: E402
from golden.study.published.job import Job, Work  # noqa: E402
from golden.study.published.task import Recipe, read  # noqa: E402

ROOT = Path(__file__).parents[4]


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    table = read("lstm-ptb").data
    generate.GENERATORS["words"](folder, **{name: table[name] for name in ("train", "test")})
    return folder


def work_of(name, data, form, rounding="rne", **changed):
    task = replace(read(name), **{key: value for key, value in changed.items() if key in ("batch", "model", "recipe")})
    found = Format.of(form)
    return Work(task=task, format=found, fmt=found.fmt and replace(found.fmt, rounding=rounding), accumulate="fp32",
                wide=changed.get("wide", False), steps=changed.get("steps", 5), device="cpu", data=data.digest())


@pytest.mark.parametrize("form, changed", [
    ("hbfp4_1x16+6", {"rounding": "stochastic"}), pytest.param("fp32", {}, marks=pytest.mark.slow),
    pytest.param("hbfp6_64", {"wide": True}, marks=pytest.mark.slow),
    ("2:4-hbfp6_1x16", {"recipe": Recipe(kind="adamw", rate=0.01, clip=1.0, schedule="linear", warmup=0.5)})])
def test_killed_at_any_step(form, changed, tmp_path):
    data = load({"kind": "digits"}, Path())
    work = work_of("digits", data, form, batch=700, **changed)             # two steps an epoch
    whole = Job(work, data, [3, 4]).run()
    assert [point["step"] for point in whole[0]["curve"]] == [2, 4, 5]
    for stop in range(1, 5):
        def kill(job, stop=stop):
            if job.step == stop:
                raise Killed
        with pytest.raises(Killed):
            Job(work, data, [3, 4]).run(tmp_path, 0, kill)
    assert Job(work, data, [3, 4]).run(tmp_path, 0) == whole
    assert [Job(work, data, [seed]).run()[0] for seed in (3, 4)] == whole
    apart = replace(work, task=replace(work.task, together=False))
    assert [each["digest"] for each in Job(apart, data, [3, 4]).run()] == [each["digest"] for each in whole]
    assert apart.key(3) == work.key(3) != work.key(4)
    assert whole[0]["digest"] != whole[1]["digest"]


def test_killed_amid_a_text(words, tmp_path):
    """The state of the LSTM goes on, and dropout is drawn anew for each step; the other text has fewer rows."""
    task = read("lstm-ptb")
    data = load(task.data | {"length": 3}, words)
    work = work_of("lstm-ptb", data, "hbfp4_1x8", batch=200, model=task.model | {"width": 8})
    assert data.steps(200) == 3 and len(next(data.tests(200))[1]) == 150
    whole = Job(work, data, [0]).run()
    for stop in (1, 2, 3, 4):
        def kill(job, stop=stop):
            if job.step == stop:
                raise Killed
        with pytest.raises(Killed):
            Job(work, data, [0]).run(tmp_path, 0, kill)
    job = Job(work, data, [0])
    assert job.run(tmp_path, 0) == whole and whole[0]["value"] < 26 and 0 < whole[0]["curve"][0]["loss"] < 4
    products, errors = job.layers()
    assert {each.format for each in products.entries} == {"hbfp4 (1, 8)"} and len(errors.operands) > 6


def killed(words, folder):
    """Start a process, kill it -9 when it has written a checkpoint, and give that."""
    process = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=subprocess.DEVNULL,
                               env=os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())})
    deadline = time.monotonic() + 300
    while not (folder.exists() and list(folder.glob("[!.]*.pt"))) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    checkpoint, = folder.glob("[!.]*.pt")
    return checkpoint


SCRIPT = """
from pathlib import Path
from tests.golden.study.published.test_job import Job, load, work_of
data = load({"kind": "teacher"}, Path())
Job(work_of("teacher", data, "hbfp4_1x16", batch=20, steps=60), data, [0]).run(Path(%r), 0)
"""


@pytest.mark.slow    # one that stops at each of its steps is above
def test_killed_process(tmp_path):
    """A real kill -9 amid an epoch; this process goes on."""
    assert 0 < torch.load(killed(["-c", SCRIPT % str(tmp_path)], tmp_path))["step"] < 60
    data = load({"kind": "teacher"}, Path())
    work = work_of("teacher", data, "hbfp4_1x16", batch=20, steps=60)
    assert Job(work, data, [0]).run(tmp_path) == Job(work, data, [0]).run()


@pytest.mark.slow
def test_killed_command(tmp_path):
    arguments = ["train", "--task", "digits", "--formats", "hbfp4_1x16", "--epochs", "1", "--batch", "20",
                 "--checkpoint", "0", "--out", str(tmp_path)]
    checkpoint = killed(["-m", "golden", *arguments], tmp_path / "runs")
    assert 0 < torch.load(checkpoint)["step"] < 71
    from golden.__main__ import main
    assert main(arguments) == 0 and not checkpoint.exists()
    result, = (json.loads(path.read_text()) for path in tmp_path.glob("runs/*.json"))
    data = load({"kind": "digits"}, Path())
    work = work_of("digits", data, "hbfp4_1x16", batch=20, steps=0)
    assert [result] == Job(replace(work, task=replace(work.task, epochs=1)), data, [0]).run()
