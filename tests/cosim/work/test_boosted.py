"""Products of training with mixed mantissas on a simulated core, and a wrong digit that is seen."""

import numpy as np
import pytest

from cosim.bench import digits
from cosim.emit import emit
from cosim.simulate.simulation import Simulation
from cosim.work.boosted import boosted
from cosim.work.device import Core
from hbfp.design import Design
from hbfp.format import HBFPFormat

pytestmark = pytest.mark.cosim


def test_a_step_of_each_epoch(monkeypatch):
    design = Design(format=HBFPFormat(mantissa=4, block=(1, 8)), rows=4, cols=4, wide=6, depth=64)
    with Simulation(emit(design), level="-O0") as simulation:
        core = Core(simulation)
        outcome = boosted(core, steps=1)
        assert outcome.passed and outcome.comparison.compared > 50_000
        assert 0 < outcome.notes["macs_4_bits"] < outcome.notes["macs_6_bits"]
        rate = [outcome.notes[f"macs_{bits}_bits"] / outcome.notes[f"product_cycles_{bits}_bits"] for bits in (4, 6)]
        assert rate[0] > 2.5 * rate[1]    # a quarter of the peak, but for what a product has around it
        split = digits.split
        monkeypatch.setattr(digits, "split", lambda *given: (split(*given)[0], np.abs(split(*given)[1]) // 2 * 2))
        assert not boosted(core, steps=1).passed
