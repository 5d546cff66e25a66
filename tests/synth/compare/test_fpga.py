"""Ratios of FPGA cells and clocks: to FP32 of the same unit and recipe."""

from synth.compare.fpga import Row, ratios
from synth.measure.fpga import Counts


def test_ratios_are_to_fp32_of_the_same_unit_and_recipe():
    rows = [Row("element", "hbfp8", "ecp5", Counts(100, 9, 0, 34, 0), 100.0),
            Row("element", "fp32", "ecp5", Counts(1000, 90, 4, 68, 0), 20.0),
            Row("element", "fp32", "ecp5-logic", Counts(4000, 90, 0, 68, 0), 15.0)]
    assert ratios(rows, rows[0]) == {"luts": 10, "carries": 10, "flipflops": 2, "clock": 5}
    assert ratios(rows[:1], rows[0]) == {}
    rows[1].clock = "does not fit"
    assert "clock" not in ratios(rows, rows[0])
