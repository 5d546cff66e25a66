"""Every named design runs the digits network and agrees bit for bit."""

import json

import pytest

from cosim.__main__ import main
from hbfp.presets import PRESETS


@pytest.mark.cosim
@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_preset_agrees(name, tmp_path):
    path = tmp_path / "result.json"
    assert main(["--preset", name, "--bench", "workload", "--quiet", "--json", str(path)]) == 0
    (outcome,) = json.loads(path.read_text())["outcomes"]
    assert outcome["compared"] > 0 and outcome["mismatches"] == 0
