"""Products of random shapes on the Verilated accelerator: they pass, a wrong cycle is seen, options are refused.

Covers: cosim/command/numbered.py.
"""

import json
from dataclasses import replace
from functools import partial

import pytest

from cosim.__main__ import main
from cosim.accelerator import network
from cosim.command.gemms import shape

from ..accelerator.built import ACCELERATOR, LEVEL

SMALL = ["gemms", *ACCELERATOR.words(), "--quiet", "--most", "20"]


@pytest.mark.cosim
@pytest.mark.filterwarnings("ignore")
def test_products(tmp_path, monkeypatch, capsys):
    plain = partial(network.run, level=LEVEL)
    monkeypatch.setattr(network, "run", plain)
    path = tmp_path / "a.json"
    assert main([*SMALL, "--count", "3", "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    assert len(found["runs"]) == 9 and not found["failed"]
    m, k, n = shape(0, 20)
    assert found["runs"][0]["shape"] == [m, k, n] and found["runs"][0]["compared"] == m * n
    assert found["runs"][0]["scale_sim"] == (2 * 8 + 8 + m - 2) * -(-k // 8) * -(-n // 8) - 1
    assert "9 of 9 runs have PyTorch's bits and the model's cycles" in capsys.readouterr().out

    def late(*args, **options):
        result = plain(*args, **options)
        return replace(result, model=replace(result.model, cycles=result.model.cycles + 1))

    monkeypatch.setattr(network, "run", late)
    assert main([*SMALL, "--count", "1"]) == 1
    assert "0 of 3 runs have" in capsys.readouterr().out


def test_shapes_are_small_and_large():
    shapes = [shape(number, 256) for number in range(200)]
    sizes = [size for each in shapes for size in each]
    assert min(sizes) == 1 and max(sizes) > 240 and 100 < sum(size < 16 for size in sizes) < 500
    assert shape(7, 256) == shape(7, 256)


@pytest.mark.parametrize("words, message", [
    (["--count", "0"], "--count 0: must be 1 to 100000"), (["--seed", "-1"], "--seed -1: must be 0 to 2147483647"),
    (["--most", "5000"], "--most 5000: must be 1 to 4096"),
    (["--cols", "64"], "--cols 64: must be one of 4, 8, 16, 32 in an accelerator")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["gemms", *words])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m cosim gemms: error: {message}\n"
