"""Whole streams of payloads through the stand-in core: results under every pause, and each planted fault found.

Covers: cosim/simulate/model.py.
"""

import re

import numpy as np
import pytest

from cosim.simulate.simulation import Pause, ProtocolError, Simulation
from cosim.work.device import Core
from tests.cosim.standin import write_standin

pytestmark = pytest.mark.cosim


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Opens the stand-in with a planted fault, built once each."""
    opened = {}

    def model(fault):
        if fault not in opened:
            folder = tmp_path_factory.mktemp("standin")
            opened[fault] = Simulation(write_standin(folder, fault=fault), level="-O0")
        opened[fault].reset()
        return opened[fault]
    return model


def product(simulation, pause=None):
    rng = np.random.default_rng(0)
    x, w = rng.integers(-127, 128, (37, 10)), rng.integers(-127, 128, (10, 7))
    core = Core(simulation, dict.fromkeys(simulation.streams, pause) if pause else None)
    return core, core.matmul(x, w), x @ w


@pytest.mark.parametrize("pause", [None, Pause(0.3), Pause(0.5, 4), Pause(0.8, 20)])
def test_products_survive_pauses(models, pause):
    core, got, want = product(models(0), pause)
    assert np.array_equal(got, want)
    beats = {"i_cmd": 9, "i_x": 333, "i_w": 108, "o": 111}
    assert {name: traffic.beats for name, traffic in core.last_run.traffic.items()} == beats
    # Without pauses: a cycle for each beat and each command, as nothing overlaps in the stand-in.
    assert pause or core.last_run.cycles == 9 + 333 + 108 + 111


def test_wrong_bits_are_seen(models):
    _, got, want = product(models(2), Pause(0.3))
    assert (got != want).any()


@pytest.mark.parametrize("fault, message", [
    (1, "o withdrew a payload that waited"), (3, "o changed a payload that waited"),
    (4, "o offers more than was asked for")])
def test_broken_rules_are_named(models, fault, message):
    with pytest.raises(ProtocolError, match=rf"^Cycle \d+: {message} \(i_cmd 1 of 9, i_x \d+ of 333, "
                                            r"i_w \d+ of 108, o \d+ of 111\)$"):
        product(models(fault), Pause(0.5, 3))


def test_standstill_is_an_error(models):
    simulation = models(0)
    payload = simulation.streams["i_x"].pack(mantissa=np.zeros((1, 4), int))
    with pytest.raises(ProtocolError, match=r"^Cycle \d+: no transfer for 100 cycles on i_x "
                                            r"\(i_cmd 0 of 0, i_x 0 of 1, i_w 0 of 0, o 0 of 0\)$"):
        simulation.run({"i_x": payload}, {}, patience=100)


def test_limit(models):
    simulation = models(0)
    command = simulation.streams["i_cmd"].pack(rows=[1], tiles=[1])
    with pytest.raises(ProtocolError, match=r"^Cycle \d+: not finished after 10 cycles "
                                            r"\(i_cmd 1 of 1, i_x 0 of 0, i_w 0 of 0, o 0 of 1\)$"):
        simulation.run({"i_cmd": command}, {"o": 1}, limit=10)
    simulation.reset()
    run = simulation.run({"i_cmd": command}, {"o": 1}, limit=10, partial=True, bucket=4)
    assert run.traffic["i_cmd"].beats == 1 and run.traffic["i_cmd"].activity.tolist() == [1, 0, 0]
    simulation.reset()
    assert np.array_equal(*product(simulation)[1:])


def test_reset_clears_error(models):
    simulation = models(0)
    simulation.run({"i_cmd": simulation.streams["i_cmd"].pack(rows=[0], tiles=[1])}, {})
    assert simulation.flag("error") == 1
    simulation.reset()
    assert simulation.flag("error") == 0


def test_wrong_payload(models):
    message = "Payloads of i_x must be uint8 of shape (beats, 4), not uint8 of (2, 3)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        models(0).run({"i_x": np.zeros((2, 3), np.uint8)}, {})
