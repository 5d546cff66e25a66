"""The examples of docs/fused.md run."""

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

PAGE = Path(__file__).parents[3] / "docs/fused.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def test_examples_run(capsys):
    names = {}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["step"].joint
    message = re.search(r"print\(error\) +# (.*)", PAGE.read_text())[1]
    assert capsys.readouterr().out == f"{message}\n"


def test_example_of_a_model_can_be_searched(tmp_path):
    pytest.importorskip("optuna")
    from golden.study.tune import tune
    from golden.study.tune_model import Search
    source, = (block for block in BLOCKS if "def model(trial)" in block)
    (tmp_path / "mine.py").write_text(source)
    rows = tune(Search(model=str(tmp_path / "mine.py"), trials=2, epochs=1), tmp_path / "out")
    assert len(rows) == 2
