"""The longest command there is: every bit of the counter of passes moves."""

import numpy as np
import pytest

from cosim.emit import emit
from cosim.simulate.simulation import Simulation
from cosim.work.device import Core
from golden.core.device import Golden
from golden.perf.cycles import product_cycles
from hbfp.design import TILE_BITS
from hbfp.options import design_from_values


@pytest.mark.cosim
def test_most_passes():
    """65 535 passes of one row: their sum, and not one cycle more or less."""
    design = design_from_values({"arithmetic": "int", "mantissa": 4, "rows": 1, "depth": 2, "growth": TILE_BITS})
    passes = design.max_tiles
    assert passes == 2 ** TILE_BITS - 1
    rng = np.random.default_rng(0)
    x, w = rng.integers(-7, 8, (2, passes)), rng.integers(-7, 8, (passes, 1))
    x[0], w[-1] = 7, 7    # the last pass counts, too
    manifest = emit(design)
    with Simulation(manifest, level="-O1") as simulation:
        core = Core(simulation)
        assert np.array_equal(core.matmul(x, w), Golden(design).matmul(x, w))
        assert core.last_run.cycles == product_cycles(design, manifest.latency, 2, passes, 1)
