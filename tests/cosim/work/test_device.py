"""The simulated core as a device: cycles of its products meet the formula."""

import numpy as np
import pytest

from cosim.emit import emit
from cosim.simulate.simulation import Simulation
from cosim.work.device import Core
from golden.core.device import Golden
from golden.perf.cycles import product_cycles
from hbfp.design import Design
from hbfp.format import HBFPFormat
from tests.cases import slow


@pytest.mark.cosim
@pytest.mark.parametrize("parameters", [{}, slow({"side_lanes": 1}), {"side_lanes": 2, "share": 2}])
def test_cycles_meet_the_formula(parameters):
    block = (1, 8 if "share" in parameters else 4)
    design = Design(format=HBFPFormat(block=block), rows=4, depth=32, **parameters)
    manifest = emit(design)
    core, golden = Core(Simulation(manifest, level="-O1")), Golden(design)
    bias = np.ones(50, np.float32)
    for shape in ((1, 1, 1), (5, 9, 7), (40, 50, 30), (1, 100, 9), (1, 3, 50), (70, 8, 9)):
        x, w = golden.encode(np.ones(shape[:2], np.float32)), golden.encode(np.ones(shape[1:], np.float32), -2)
        for steps in ({}, {"bias": bias[:shape[2]]}, {"bias": bias[:shape[2]], "scale": bias[:shape[2]]}):
            core.simulation.reset()
            core.matmul(x, w, **steps)
            assert core.last_run.cycles == product_cycles(design, manifest.latency, *shape, len(steps)), (shape, steps)
