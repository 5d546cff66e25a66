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
