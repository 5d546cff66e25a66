"""The critical path as it is printed: by registers and wires, whatever the mapping called its cells."""

from types import SimpleNamespace

import pytest

from synth.report.bitstream import path, stem


@pytest.mark.parametrize("name, want", [
    ("dut.sequencer.tile_TRELLIS_FF_Q_4", "dut.sequencer.tile"), ("dut.a.b[4]", "dut.a.b"),
    ("dut.queue.w_data_TRELLIS_FF_Q_17_DI_L6MUX21_Z_D0_PFUMX_Z_BLUT_LUT4_Z", "dut.queue.w_data"),
    ("dut.sum_LUT4_Z$CCU2_COMB0", "dut.sum"), ("$nextpnr_CCU2C_301$CIN", ""), ("dut.LUT4ish", "dut.LUT4ish")])
def test_name_without_what_the_mapping_adds(name, want):
    assert stem(name) == want


def test_path_by_what_it_passes():
    def step(what, ns, cell):
        return {"what": what, "ns": ns, "cell": cell, "net": None}
    built = SimpleNamespace(path=[
        step("clk-to-q", 0.5, "dut.a_TRELLIS_FF_Q"), step("routing", 1.5, "dut.b_LUT4_Z"),
        step("logic", 0.25, "dut.b_LUT4_Z"), step("routing", 0, "$nextpnr_CCU2C_3$CIN"),
        step("logic", 0, "$nextpnr_CCU2C_3$CIN"), step("routing", 0.5, "dut.c_TRELLIS_FF_Q_1"),
        step("setup", 0, "dut.c_TRELLIS_FF_Q_1")])
    assert path(built).splitlines() == [
        "critical path, 2.75 ns: ns, of these wires, cells, up to", "  0.50    0.00     0  dut.a",
        "  1.75    1.50     1  dut.b", "  0.50    0.50     0  dut.c"]
