"""Multipliers of carry chains multiply: proved for small operands of every kind."""

import pytest

from synth.tools import ecp5, yosys

PROOF = """read_verilog -sv unit.v
hierarchy -top unit
proc
copy unit gold
read_verilog -lib -specify +/lattice/cells_sim_ecp5.v
techmap -map soft.v unit/t:$mul
select -assert-none unit/t:$mul
select -assert-min 1 unit/t:CCU2C
techmap -map +/lattice/cells_sim_ecp5.v unit
techmap unit
delete =A:blackbox
miter -equiv -flatten -make_assert gold unit miter
select -module miter
flatten
techmap
opt
select -clear
sat -verify -prove-asserts miter
"""


@pytest.mark.synth
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("a, b, out", [(4, 4, 8), (3, 5, 6), (4, 6, 11)])
def test_products_are_equal(tmp_path, signed, a, b, out):
    kind = "signed " if signed else ""
    (tmp_path / "soft.v").write_text(ecp5.SOFT)
    (tmp_path / "unit.v").write_text(
        f"module unit(input {kind}[{a - 1}:0] a, input {kind}[{b - 1}:0] b, output {kind}[{out - 1}:0] y);\n"
        "  assign y = a * b;\nendmodule\n")
    yosys.run(PROOF, tmp_path)


def cell(kind, **ports):
    """A cell of a netlist, each port of one bit."""
    outputs = ("COUT", "S0", "Z")
    return {"type": kind, "connections": {name: [bit] for name, bit in ports.items()},
            "port_directions": {name: "output" if name in outputs else "input" for name in ports}}


def test_carries_that_nobody_reads_are_open():
    cells = {"low": cell("CCU2C", CIN="0", COUT=2, S0=3), "high": cell("CCU2C", CIN=2, COUT=4, S0=5),
             "read": cell("CCU2C", CIN="0", COUT=6), "lut": cell("LUT4", A=6, Z=7), "out": cell("CCU2C", COUT=8)}
    ecp5.open_ends({"cells": cells, "ports": {"y": {"direction": "output", "bits": [8, 3]},
                                              "x": {"direction": "input", "bits": [4]}}})
    assert {name: each["connections"]["COUT"] for name, each in cells.items() if "COUT" in each["connections"]} == {
        "low": [2], "high": ["x"], "read": [6], "out": [8]}
    assert cells["high"]["connections"]["S0"] == [5] and cells["lut"]["connections"] == {"A": [6], "Z": [7]}
