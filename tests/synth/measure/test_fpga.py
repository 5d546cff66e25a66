"""FPGA counts: what is counted as what."""

import pytest

from synth.measure.fpga import Counts, counts


@pytest.mark.parametrize("family, types, want", [
    ("ecp5", {"LUT4": 7, "PFUMX": 3, "CCU2C": 2, "TRELLIS_FF": 5, "MULT18X18D": 1, "DP16KD": 4, "TRELLIS_DPR16X4": 9},
     Counts(7, 2, 1, 5, 4)),
    ("ice40", {"SB_LUT4": 7, "SB_CARRY": 2, "SB_DFF": 5, "SB_DFFESR": 3, "SB_MAC16": 1, "SB_RAM40_4K": 2},
     Counts(7, 2, 1, 8, 2)),
    ("xc7", {"LUT2": 1, "LUT6": 4, "MUXF7": 9, "CARRY4": 2, "FDRE": 5, "FDSE": 1, "DSP48E1": 3, "RAMB18E1": 1,
             "RAM32M": 2}, Counts(5, 2, 3, 6, 1)),
])
def test_cells_are_counted_by_column(family, types, want):
    assert counts(types, family) == want


def test_counts_add_up():
    total = Counts(1, 2, 0, 3, 0)
    total.add(Counts(10, 0, 1, 0, 2), 3)
    assert total == Counts(31, 2, 3, 3, 6)
