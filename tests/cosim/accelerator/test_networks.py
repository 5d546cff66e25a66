"""Random networks against PyTorch: on the golden machine and on the Verilog; what differs is told with its number.

Covers: golden/lower/random_networks.py, golden/lower/fitting.py, cosim/accelerator/drawn.py.
"""

import json
from random import Random

import numpy as np
import pytest

from cosim.accelerator import networks, untimed
from cosim.command.programs import main
from cosim.emit import emit_accelerator
from cosim.work.random_trainers import draw_trainer
from golden.lower import random_networks
from golden.lower.errors import LoweringError
from golden.lower.random_networks import ELEMENTS, IMAGES, ROWS, SEQUENCES, Networks, drawn_network, random_network

from .built import LEVEL
from .test_trainings import MACHINES


def test_a_number_stands_for_one():
    one, again, other = (drawn_network(Random(f"network {seed} 0")) for seed in (2, 2, 3))
    assert one[2] == again[2] != other[2] and one[1][0].equal(again[1][0])
    assert [each.tolist() for each in one[0].state_dict().values()] == [
        each.tolist() for each in again[0].state_dict().values()]


def test_of_everything():
    """Every function, and each kind of input and of layer, within the first numbers."""
    draws = Networks(Random(1), 2, False)
    texts = [draws._function(dims).text.split()[0] for dims in (1, 2, 3) for _ in range(800)]
    assert set(texts) == {*ELEMENTS, *ROWS, *IMAGES, *SEQUENCES}
    texts = [drawn_network(Random(seed))[2] for seed in range(40)]
    assert all(any(name in text for text in texts) for name in (
        "rows (", "sequences (", "words (", "images (", "Conv2d", "Residual", "Joined", "LayerNorm", "Applied"))


@pytest.mark.parametrize("name, seed", [("four", 3), ("tiles", 6)])
def test_a_few(name, seed):
    found = networks.run(None, MACHINES[name], [seed])
    assert (found.count, found.failures, found.none) == (1, {}, []) and found.numbers > 20


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_many(number):
    found = networks.run(None, draw_trainer(7, number), range(number, 500, 20))
    assert not found.failures and not found.none and found.count == 25


@pytest.mark.slow
@pytest.mark.cosim
@pytest.mark.parametrize("name", ["blocks", "four tiles", "aligned"])
def test_on_the_verilog(name):
    found = networks.run(emit_accelerator(MACHINES[name]), MACHINES[name], range(20), level=LEVEL)
    assert found.count == 20 and not found.failures and found.cycles > 10_000


def test_a_difference_is_told(monkeypatch, tmp_path, capsys):
    """By the command, too, whose exit status it is."""
    own = untimed.Untimed.read

    def read(self, name, shift=0):
        values = own(self, name, shift)
        values.view(np.uint32)[(0,) * values.ndim] ^= 1
        return values
    monkeypatch.setattr(untimed.Untimed, "read", read)
    out = tmp_path / "out.json"
    assert main([*MACHINES["four"].words(), "--networks", "--machine", "--count", "1", "--seed", "3", "--quiet",
                 "--json", str(out)]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("network 3: ") and " numbers differ, in " in first
    assert last.startswith("0 of 1 networks equal PyTorch; ") and list(json.loads(out.read_text())["failures"]) == ["3"]


@pytest.mark.parametrize("error, anew, failure", [
    (LoweringError("it needs 9 words of memory V, not 8; larger --v-words would do"), {"V, X or W": 3}, ""),
    (LoweringError("Layer 'a' (gelu) cannot be lowered: no"), {}, "Layer 'a' (gelu) cannot be lowered: no"),
    (KeyError("a"), {}, "KeyError: 'a'")])
def test_another_refusal_is_a_failure(error, anew, failure, monkeypatch):
    def lower(*_):
        raise error
    monkeypatch.setattr(random_networks, "lower", lower)
    monkeypatch.setattr(random_networks, "DRAWS", 3)
    drawn = random_network(MACHINES["four"], 1)
    assert (drawn.lowered, drawn.anew, drawn.failure) == (None, anew, failure) and drawn.text
