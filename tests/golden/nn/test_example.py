"""The example that the documentation shows does what it says."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")

EXAMPLE = Path(__file__).parents[3] / "docs/examples/pytorch.py"


@pytest.mark.slow
def test_example(capsys):
    runpy.run_path(str(EXAMPLE))["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert lines[5] == "FLOPs: hbfp6 (1, 16) 95.24 %, hbfp8 (1, 16) 4.76 %"
    assert float(lines[6].split()[1]) > 95
    assert lines[7:] == ["operators: hbfp.add_bias.default, hbfp.linear.default, hbfp.matmul.default",
                         "equal bits: True"]
