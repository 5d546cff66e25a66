"""The text that a person reads: how long it is, that all in it has a name, and that nothing is left to fold.

Covers: gen/simplify.py, gen/naming.py, gen/module.py.
"""

import re
from functools import cache

import pytest

from gen.emit import Emitter, verilog
from gen.fold import fold
from gen.module import Module
from gen.naming import name
from gen.readable import TEXTS, Text
from gen.simplify import clocked, gathered, helper, named, neat, once, without_unread
from gen.text import in_source_order, rewritten
from gen.units import make_unit
from hbfp.options import design_from_values

#: Most lines of the readable text of the default core, and their share of those of the plain text.
LINES, SHARE = 5700, 0.52


@cache
def default_core():
    """Readable and plain text of the default core."""
    emitter = Emitter()
    emitter.convert(make_unit("core", design_from_values({})))
    return verilog(emitter), verilog(emitter, "plain")


def lines(text):
    return [line for line in text.splitlines() if line.strip()]


def test_the_default_core_has_half_the_lines():
    text, plain = map(lines, default_core())
    assert len(text) < LINES and len(text) < SHARE * len(plain)


def test_every_wire_has_a_name():
    text, plain = default_core()
    declared = r"^  (?:wire|reg|output reg) (?:\[\d+:0\] )?(\S+)"
    assert len(re.findall(declared + r" *;", plain, re.MULTILINE)) > 4000
    names = re.findall(declared, text, re.MULTILINE)
    assert len(names) > 1000 and [each for each in names if not re.fullmatch(r"[A-Za-z]\w*;?", each)] == []
    assert "verilog_backend" not in text and "\\" not in text


def test_nothing_is_left_to_fold(monkeypatch):
    """What a second pass would still fold, before its wires have names, is nothing."""
    found = {}

    def again(module):
        before = [line for item in module.items for line in item.lines()]
        fold(module)
        found[module.head] = [line for item in module.items for line in item.lines()] == before
    steps = TEXTS["readable"].steps
    emitter = Emitter()
    emitter.convert(make_unit("core", design_from_values({"rows": 2, "block": (1, 2)})))
    monkeypatch.setitem(TEXTS, "plain", Text((*steps[:steps.index(fold) + 1], again), people=True))
    verilog(emitter, "plain")
    assert len(found) > 15 and all(found.values())


def test_logic_stands_in_the_order_of_the_source():
    assert in_source_order("  cell $add $9\n  cell $not $10\n  connect \\Y $9\n") == (
        "  cell $add $00000009\n  cell $not $00000010\n  connect \\Y $9\n")


HEAD = """\
module top(clk, rst, a, b, o, q);
  input clk;
  wire clk;
  input rst;
  wire rst;
  input [3:0] a;
  wire [3:0] a;
  input [3:0] b;
  wire [3:0] b;
  output [3:0] o;
  wire [3:0] o;
  output [3:0] q;
  reg [3:0] q = 4'h0;
  reg \\$auto$verilog_backend.cc:2355:dump_module$1000000007  = 0;
"""


def after(text, *steps):
    module = Module(f"{HEAD}{text}endmodule")
    for step in steps:
        step(module)
    return [line.strip() for item in module.items for line in item.lines()], module


NEXT = """\
  reg [3:0] \\$1 ;
  always @* begin
    if (\\$auto$verilog_backend.cc:2355:dump_module$1000000007 ) begin end
    \\$1  = {};
    if (rst) begin
      \\$1  = 4'h0;
    end
  end
  always @(posedge clk)
    q <= \\$1 ;
"""


@pytest.mark.parametrize("value, first", [("q", []), ("a", ["q <= a;"])])
def test_a_register_takes_what_its_process_chose(value, first):
    found, module = after(NEXT.replace("{}", value), clocked)
    assert found == ["always @(posedge clk) begin", *first, "if (rst) q <= 4'h0;", "end"] or (
        not first and found == ["always @(posedge clk) if (rst) q <= 4'h0;"])
    assert "$1" not in module.declared


def test_a_next_value_that_others_read_stays():
    text = NEXT.replace("{}", "q") + "  assign o = \\$1 ;\n"
    found, module = after(text, clocked)
    assert "always @* begin" in found and "$1" in module.declared


def test_bits_are_gathered():
    found, _ = after("  assign o[1:0] = a[3:2];\n  assign o[3] = 1'h0;\n  assign o[2] = b[0];\n", gathered)
    assert found == ["assign o = {1'h0, b[0], a[3:2]};"]
    found, _ = after("  assign o[1:0] = a[3:2];\n  assign o[3] = b[0] & b[1];\n  assign o[2] = b[0];\n", gathered)
    assert len(found) == 3
    found, _ = after("  assign o[1:0] = a[3:2];\n  assign o[3] = b[0];\n", gathered)
    assert len(found) == 2


def test_a_name_takes_the_place_of_a_number():
    text = ("  wire [4:0] \\$1 ;\n  wire [3:0] \\$2 ;\n  wire \\$3 ;\n  wire [3:0] total;\n  assign \\$1  = a + b;\n"
            "  assign \\$2  = a ^ b;\n  assign \\$3  = a[1];\n  assign o = \\$2 ;\n  assign total = \\$1 [4:1];\n"
            "  always @(posedge clk)\n    q <= { \\$1 [4], \\$1 [2:1], \\$3  };\n")
    found, module = after(text, named, without_unread)
    assert found == ["assign \\$1  = a + b;", "assign o = a ^ b;", "assign total = \\$1 [4:1];",
                     "always @(posedge clk) q <= {total[3], total[1:0], a[1]};"]
    assert {"$2", "$3"}.isdisjoint(module.declared)


def test_no_name_is_said_of_itself():
    """Parts of a number that overlap: each name says which of its bits it is, or of which name before it."""
    text = ("  wire [4:0] \\$1 ;\n  wire first;\n  wire [1:0] place;\n  wire [1:0] second;\n"
            "  assign \\$1  = a + b;\n"
            "  assign first = \\$1 [0];\n  assign place = \\$1 [1:0];\n  assign second = \\$1 [1:0];\n"
            "  assign o = { first, place, \\$1 [1] };\n")
    found, _ = after(text, named)
    assert sorted(found) == ["assign \\$1  = a + b;", "assign first = \\$1 [0];",
                             "assign o = {first, place, place[1]};",
                     "assign place = \\$1 [1:0];", "assign second = place;"]


def test_bits_of_a_number_for_another_name_are_those_of_that_name():
    text = "  wire [3:0] \\$1 ;\n  wire [1:0] low;\n  assign \\$1  = a;\n  assign low = \\$1 [1:0];\n"
    text += "  assign o = {low, \\$1 [1:0]};\n"
    found, module = after(text, named)
    assert found == ["assign low = a[1:0];", "assign o = {low, a[1:0]};"] and "$1" not in module.declared


def test_what_stands_together_on_the_left_is_set_and_not_read():
    text = ("  wire [3:0] \\$1 ;\n  wire [1:0] low;\n  assign { \\$1 [1:0], \\$1 [3:2] } = a ^ b;\n"
            "  assign low = \\$1 [1:0];\n  assign o = { low, \\$1 [1:0] };\n")
    found, module = after(text, named, without_unread)
    assert found[0] == "assign {\\$1 [1:0], \\$1 [3:2]} = a ^ b;" and "$1" in module.declared


def test_a_clock_is_read():
    text = "  wire \\$1 ;\n  wire c;\n  assign c = clk;\n  assign \\$1  = clk;\n" + "".join(
        f"  always @(posedge {each})\n    q[{n}] <= a[{n}];\n" for n, each in enumerate(("c", "\\$1 ")))
    found, _ = after(text, named, without_unread)
    assert found == ["assign c = clk;", "always @(posedge c) q[0] <= a[0];", "always @(posedge clk) q[1] <= a[1];"]


def test_what_a_process_sets_is_not_folded_into_it():
    """It would read its own value from before: nothing wakes a process that runs."""
    text = ("  wire [3:0] \\$1 ;\n  reg [3:0] x;\n  assign \\$1  = x ^ b;\n  always @* begin\n    q = \\$1 ;\n"
            "    x = a;\n  end\n  assign o = x;\n")
    found, _ = after(text, fold)
    assert found[0] == "assign \\$1  = x ^ b;" and "q = \\$1 ;" in found


def test_what_is_computed_twice_is_computed_once():
    text = ("  wire \\$1 ;\n  wire \\$2 ;\n  wire [1:0] \\$3 ;\n  assign \\$1  = a[0] & b[0];\n"
            "  assign \\$2  = a[0] & b[0];\n  assign \\$3  = a[0] & b[0];\n  assign o = { \\$1 , \\$2 , \\$3  };\n")
    found, _ = after(text, once, fold)
    assert "assign o = {{2{a[0] & b[0]}}, \\$3 };" in found and "assign \\$3  = a[0] & b[0];" in found


def test_what_nothing_reads_is_left_out():
    text = "  wire \\$1 ;\n  wire kept;\n  wire other;\n  assign \\$1  = a[0];\n  assign kept = a[0] & b[0];\n" \
           "  assign other = a[1];\n  assign o = a;\n"
    found, module = after(text, without_unread)
    assert found == ["assign kept = a[0] & b[0];", "assign o = a;"] and "other" not in module.declared


def test_neighbours_in_braces_are_one():
    text = "  assign o = { a[3:2], a[1:0] };\n  assign q[3:1] = { 1'h1, 2'h2 };\n  assign q[0] = 1'h0;\n"
    assert after(text, gathered, neat)[0] == ["assign o = a;", "assign q = 4'hc;"]
    assert after("  assign o = { a[3], a[1:0], 1'h0 };\n", neat)[0] == ["assign o = {a[3], a[1:0], 1'h0};"]


def test_wires_of_one_name_that_are_alike_are_one():
    text = ("  wire \\c$1 ;\n  wire c;\n  assign c = a[0] & b[0];\n  assign \\c$1  = a[0] & b[0];\n"
            "  assign o = \\c$1 ;\n")
    assert after(text, once)[0] == ["assign c = a[0] & b[0];", "assign o = c;"]


def test_bits_that_are_chosen_one_by_one_are_a_register():
    text = NEXT.replace("    \\$1  = {};\n", "    \\$1 [3:1] = q[3:1];\n    \\$1 [0] = a[0];\n")
    found, _ = after(text, clocked)
    assert found == ["always @(posedge clk) begin", "q[0] <= a[0];", "if (rst) q <= 4'h0;", "end"]


@pytest.mark.parametrize("value, says", [
    ("~ a[0]", "not_a_0"), ("| a", "any_a"), ("a == b", "a_is_b"), ("a[3:1] - b", "a_3_1_minus_b"),
    ("a + 4'hc", "a_plus_12"), ("rst ? a : b", "a_if_rst"), ("(a & b) ^ (a | b)", "a_and_b_xor_a_or_b"),
    ("(a & b) ^ (a | b) ^ (b & clk)", "a_flipped"),
])
def test_names_say_what_they_hold(value, says):
    found, _ = after(f"  wire [3:0] \\$1 ;\n  assign \\$1  = {value};\n  assign o = \\$1  << \\$1 [0];\n", name)
    assert found[0].startswith(f"assign {says} = ")


def test_links_of_a_chain_have_its_name_and_a_number():
    text = "".join(f"  wire [3:0] \\${n} ;\n" for n in range(1, 4)) + (
        "  assign \\$1  = a[3:0] * b[3:0];\n  assign \\$2  = a[1:0] * b[3:0];\n  assign \\$3  = \\$1  + \\$2 ;\n"
        "  assign o = \\$3  - a;\n")
    found, _ = after(text, name)
    assert found == ["assign o_product0 = a[3:0] * b[3:0];".replace("o_product0", "a_3_0_times_b_3_0"),
                     "assign a_1_0_times_b_3_0 = a[1:0] * b[3:0];",
                     "assign o_sum = a_3_0_times_b_3_0 + a_1_0_times_b_3_0;", "assign o = o_sum - a;"]


def test_no_name_is_given_twice_and_none_is_a_keyword():
    text = ("  wire not_a_0;\n  wire \\b$7 ;\n  wire \\$1 ;\n  wire \\$2 ;\n  assign not_a_0 = a[1];\n"
            "  assign \\b$7  = a[2];\n  assign \\$1  = ~ a[0];\n  assign \\$2  = ~ a[0];\n"
            "  assign o = { \\b$7 , \\$1 , \\$2 , not_a_0 };\n")
    found, module = after(text, name)
    assert found[-1] == "assign o = {b_2, not_a_0_0, not_a_0_1, not_a_0};" and len(set(module.declared)) == len(
        module.declared)
    assert not any(map(helper, module.declared))


def test_equal_names_of_parts_say_whose_they_are():
    text = ("  wire [3:0] \\o$3 ;\n  wire [3:0] \\o$4 ;\n  unit first (\n    .i(a),\n    .o(\\o$3 )\n  );\n"
            "  unit \\first$9  (\n    .i(\\o$3 ),\n    .o(\\o$4 )\n  );\n  assign o = \\o$4 ;\n")
    unit = ("module unit(i, o);\n  input [3:0] i;\n  wire [3:0] i;\n  output [3:0] o;\n  wire [3:0] o;\n"
            "  assign o = i;\nendmodule\n")
    text = rewritten(f"{unit}\n{HEAD}{text}endmodule\n", TEXTS["readable"].steps)
    assert "  unit first (\n    .i(a),\n    .o(first_o)\n  );" in text
    assert "  unit first_unit (\n    .i(first_o),\n    .o(first_unit_o)\n  );" in text
