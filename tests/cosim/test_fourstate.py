"""Four-state simulation: nothing undefined reaches an output after reset, and the bits are golden's."""

import re

import pytest

from cosim.manifest import Manifest
from cosim.simulate.simulation import Pause
from cosim.work.device import Core
from cosim.work.products import random_products
from hbfp import manifest as described
from tests.cosim.fourstate import FourState, without_initial_values
from tests.gen.emitted import Emitted

pytestmark = pytest.mark.cosim

#: Every kind of core: name -> option values.
CORES = {
    "core": {},
    "aligned": {"accumulate": "aligned"},
    "share": {"block": (1, 8), "share": 2},
    "share aligned": {"block": (4, 4), "rows": 2, "share": 2, "accumulate": "aligned"},
    "share pipeline": {"rows": 2, "block": (1, 4), "share": 2, "pipeline": 3},
    "segments": {"block": (1, 2)},
    "ragged": {"rows": 5, "block": (1, 3), "ragged": True},
    "long": {"block": (1, 12), "multiplier": "recoded"},
    "pipeline": {"pipeline": 2},
    "stochastic": {"rounding": "stochastic", "block": (1, 8)},
    "int": {"arithmetic": "int"},
    "fp32": {"arithmetic": "fp32"},
    "fma": {"arithmetic": "fma", "pipeline": 1},
    "bf16": {"arithmetic": "bf16"},
    "gated": {"weight_clock": "gated", "rows": 2, "block": (1, 2)},
}
#: Cores whose parts others have, too: in the long regression.
SELDOM = ("segments", "ragged", "bf16", "fp32", "share aligned", "pipeline", "share", "aligned", "long", "core")
BASE = {"rows": 4, "cols": 2, "block": (1, 4), "depth": 8, "mantissa": 5}

#: A small core with shared columns, which has every kind of memory and register.
SMALL = {"rows": 2, "block": (1, 4), "share": 2, "depth": 4}


def simulation(values, folder, change=lambda text: text):
    emitted = Emitted(BASE | values)
    manifest = Manifest(folder / "manifest.json", described.Manifest.from_dict(emitted.manifest))
    return FourState(manifest, folder, change(emitted.text))


def patterns(streams):
    """No pauses, and pauses everywhere."""
    return [None, dict.fromkeys(streams, Pause(0.5, 2))]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SELDOM)) for name in CORES])
def test_nothing_is_undefined_and_bits_are_golden(name, tmp_path):
    device = simulation(CORES[name], tmp_path)
    outcome = random_products(Core(device), patterns=patterns(device.streams))
    assert outcome.comparison.compared > 100 and outcome.passed, outcome.problems


def planted(folder, change):
    """What is said of the small core after a change of its Verilog; a change that changes nothing is an error."""
    def checked(text):
        changed = change(text)
        assert changed != text
        return changed
    device = simulation(SMALL, folder, checked)
    failure, = random_products(Core(device), patterns=patterns(device.streams)).failures
    return failure


def test_a_register_without_reset_is_seen(tmp_path):
    def change(text):
        return text.replace("if (rst) ", "if (1'h0) ")
    assert re.fullmatch(r"\w+__(valid|ready) is undefined in cycle 0", planted(tmp_path, change))


def test_a_payload_that_is_not_defined_is_seen(tmp_path):
    def change(text):
        return text.replace("  output [64:0] o__payload;", "  output [64:0] o__payload;\n  assign o__payload = 65'bx;")
    assert re.fullmatch(r"o__payload is undefined in cycle \d+", planted(tmp_path, change))


def test_no_initial_value_is_left():
    text, start = Emitted(BASE | SMALL).text, re.compile(r"^  (?:output )?reg .* = .*;$", re.MULTILINE)
    left = without_initial_values(text)
    assert start.search(text) and not start.search(left) and "initial begin" not in left
    assert text.count("reg ") == left.count("reg ")
