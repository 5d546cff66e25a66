"""Units of generated Verilog."""

import pytest

from hbfp.manifest import Manifest
from synth.measure.partition import instances, split, stub, units

TEXT = """\
/* made by hand */
module hbfp_leaf_w2(a, o);
  input [1:0] a;
  wire [1:0] a;
  output o;
  wire o;
  assign o = &a;
endmodule

module hbfp_ram_d4(clk, o);
  input clk;
  output o;
endmodule

module hbfp_group_x(a, clk, o);
  input [1:0] a;
  input clk;
  output o;
  hbfp_leaf_w2 \\one.two  (
    .a(a),
    .o(o)
  );
  hbfp_ram_d4 ram (
    .clk(clk)
  );
endmodule

module hbfp_top(a, clk, o);
  input [1:0] a;
  input clk;
  output o;
  hbfp_group_x g0 (
    .a(a)
  );
  hbfp_group_x g1 (
    .a(a)
  );
  hbfp_leaf_w2 l (
    .a(a)
  );
endmodule
"""
MANIFEST = Manifest.from_dict({"top": "hbfp_top", "verilog": "hbfp_top.v", "modules": {
    "hbfp_leaf_w2": {"kind": "leaf", "count": 3, "area": None, "apart": None, "inline": 4},
    "hbfp_ram_d4": {"kind": "ram", "count": 2, "area": None, "apart": True, "inline": 4, "shape": [4, 4]},
    "hbfp_group_x": {"kind": "group", "count": 2, "area": "elements", "apart": True, "inline": 8},
    "hbfp_top": {"kind": "core", "count": 1, "area": "control", "apart": None, "inline": 4}}})


def test_modules_and_instances_are_found():
    bodies = split(TEXT)
    assert list(bodies) == ["hbfp_leaf_w2", "hbfp_ram_d4", "hbfp_group_x", "hbfp_top"]
    assert instances(bodies["hbfp_group_x"], bodies) == {"hbfp_leaf_w2": 1, "hbfp_ram_d4": 1}
    assert instances(bodies["hbfp_top"], bodies) == {"hbfp_group_x": 2, "hbfp_leaf_w2": 1}


def test_stub_has_ports_and_no_logic():
    text = stub(split(TEXT)["hbfp_leaf_w2"])
    assert text == ("(* blackbox *)\nmodule hbfp_leaf_w2(a, o);\n  input [1:0] a;\n  output o;\nendmodule")
    assert stub(split(TEXT.replace("  output o;\n  wire o;", "  output reg [3:0] o = 4'h0;"))["hbfp_leaf_w2"]) == (
        text.replace("output o", "output [3:0] o"))


def test_units_count_what_the_manifest_counts():
    found = {unit.top: unit for unit in units(TEXT, MANIFEST)}
    assert {name: unit.count for name, unit in found.items()} == {"hbfp_ram_d4": 2, "hbfp_group_x": 2, "hbfp_top": 1}
    assert list(found)[-1] == "hbfp_top"


def test_small_parts_are_synthesised_with_their_users():
    found = {unit.top: unit for unit in units(TEXT, MANIFEST)}
    assert "assign o = &a;" in found["hbfp_group_x"].verilog
    assert "assign o = &a;" in found["hbfp_top"].verilog
    assert "(* blackbox *)\nmodule hbfp_group_x" in found["hbfp_top"].verilog


@pytest.mark.parametrize("count, inside", [(8, True), (9, False)])
def test_columns_of_a_group_share(count, inside):
    """Multiply-adds are flattened into groups of up to eight."""
    leaf = "hbfp_leaf_w2 \\one.two  (\n    .a(a),\n    .o(o)\n  );\n"
    assert leaf in TEXT
    text = TEXT.replace(leaf, leaf + "".join(f"  hbfp_leaf_w2 l{n} (\n    .a(a)\n  );\n" for n in range(count - 1)))
    found = {unit.top: unit for unit in units(text, MANIFEST)}
    assert ("hbfp_leaf_w2" not in found["hbfp_group_x"].uses) == inside


def test_repeated_parts_stand_alone():
    text = TEXT.replace("hbfp_leaf_w2 l (", "".join(
        f"hbfp_leaf_w2 l{n} (\n    .a(a)\n  );\n  " for n in range(4)) + "hbfp_leaf_w2 l (")
    found = {unit.top: unit for unit in units(text, MANIFEST)}
    assert found["hbfp_leaf_w2"].count == 5
