"""The command that judges random designs, and goes on where its last run ended.

Covers: cosim/work/random_run.py.
"""

import json

import pytest

from cosim.__main__ import main
from cosim.work import random_run
from cosim.work.random_designs import draw
from hbfp import files

ENTRY = {"verdict": "passed", "compared": 10, "mismatches": 0, "problems": [], "asked": 3, "seen": 3, "sha256": []}


def run(words, tmp_path, monkeypatch, verdict="passed"):
    """The command with a check that takes no time; names of designs that it judged."""
    judged = []

    def judge(design, seed, fault, **_):
        judged.append(design.name)
        planted = {"fault": {"line": 7, "before": "a + b", "after": "a - b"}} if fault else {}
        return ENTRY | planted | {"verdict": verdict, "problems": [] if verdict == "passed" else ["core: bits"]}

    monkeypatch.setattr(random_run, "check", judge)
    monkeypatch.setattr(random_run, "parts", lambda design: ())
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))
    return main(["random", "--jobs", "1", *words]), judged


def test_a_run_goes_on_where_the_last_one_ended(tmp_path, monkeypatch, capsys):
    names = [draw(7, number).name for number in range(4)]
    assert run(["--count", "2", "--seed", "7"], tmp_path, monkeypatch) == (0, names[:2])
    out = tmp_path / "out.json"
    assert run(["--count", "4", "--seed", "7", "--json", str(out)], tmp_path, monkeypatch) == (0, names[2:])
    data = json.loads(out.read_text())
    assert (data["right"], data["count"], len(data["results"])) == (4, 4, 4)
    assert "4 of 4 designs passed; 40 outputs compared; " in capsys.readouterr().out
    monkeypatch.setattr(random_run, "benches", lambda: "other benches")
    assert run(["--count", "2", "--seed", "7"], tmp_path, monkeypatch) == (0, names[:2])


def test_verdicts_follow_from_all_that_judges():
    names = {path.relative_to(files.ROOT).as_posix() for path in random_run.sources()}
    assert names >= {"cosim/simulate/driver.cpp", "cosim/accelerator/dram.h", "golden/matmul.py", "golden/fast/pairs.h",
                     "golden/spec/tables.json", "hbfp/isa/legal.py", "hbfp/design.py"}


def test_wrong_verdicts_are_told(tmp_path, monkeypatch, capsys):
    assert run(["--count", "1", "--seed", "3"], tmp_path, monkeypatch, "FAILED")[0] == 1
    name = draw(3, 0).name
    assert f"whole seed 3 number 0, {name}: core: bits\n" in capsys.readouterr().out
    assert run(["--count", "1", "--seed", "3", "--broken"], tmp_path, monkeypatch, "FAILED")[0] == 0
    assert run(["--count", "1", "--seed", "4", "--broken"], tmp_path, monkeypatch, "passed")[0] == 1
    assert f"broken seed 4 number 0, {draw(4, 0).name}: line 7, a + b -> a - b\n" in capsys.readouterr().out


@pytest.mark.parametrize("words, message", [
    (["--count", "0"], "--count 0: must be 1 to 100000"),
    (["--seed", "-1"], "--seed -1: must be 0 to 4294967295"),
    (["--jobs", "x"], "--jobs x: must be 1 to 4096"),
    (["--json", "/no/such/file"], "--json /no/such/file: cannot be written (No such file or directory)")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["random", *words])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m cosim random: error: {message}\n"
