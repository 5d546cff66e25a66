"""The command line of trainings: what is refused, before anything long begins; the tutorial's file trains.

Covers: golden/perf/accelerator/curves.py.
"""

import re
import shlex
from pathlib import Path

import pytest

from cosim.__main__ import main
from golden.perf.accelerator import curves


@pytest.mark.parametrize("words, message", [
    (["x", "--steps", "0"], "--steps 0: must be 1 to 1000000"),
    (["x", "--check", "all"], "--check all: must be one of last, steps, layers"),
    (["x", "--stochastic", "g"],
     "--stochastic g must be none without --rounding stochastic, with which the accelerator would have it"),
    (["x", "--rounding", "stochastic", "--stochastic", "g,y"],
     "--stochastic must be none, or of x, w and g, commas between, not g,y"),
    (["x", "--seed", "-1"], "--seed -1: must be 0 to 4294967295"),
    (["x", "--machine", "--trace", "a.json"], "--trace must not be given with --machine, which has no cycles"),
    (["x", "--curve", "/no/such/folder/file"],
     "--curve /no/such/folder/file: cannot be written (No such file or directory)")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", *words])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m cosim train: error: {message}\n"


def test_curves(tmp_path):
    path = curves.draw(tmp_path / "a.png", {"accelerator": [2.0, 1.5], "PyTorch": [2.0, 1.5]}, "a training")
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_tutorial(tmp_path, monkeypatch, capsys):
    """The page's own file, and what the page says that its first command prints."""
    page = (Path(__file__).parents[3] / "docs/training.md").read_text()
    (file,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def model" in code)
    line, shown = re.search(r"\n    python -m cosim (train mine\.py .*--machine.*)\n\n```text\n(.*?)```", page,
                            re.DOTALL).groups()
    (tmp_path / "mine.py").write_text(file)
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(line), "--quiet"]) == 0
    assert capsys.readouterr().out == shown
