"""The proof that two texts are the same logic: other names and orders are, any other function is not."""

import json

import pytest

from benchmarks.same_logic import compare

PLAIN = """
module top(input clk, input rst, input [3:0] a, input [3:0] b, output reg [3:0] o, output z);
  reg [3:0] first = 5, second;
  reg [7:0] memory [3:0];
  reg [7:0] read;
  always @(posedge clk) begin
    if (rst) first <= 0; else first <= a + b;
    second <= first & a;
    memory[a[1:0]] <= {first, second};
    read <= memory[b[1:0]];
    o <= first[0] ? second : first ^ read[7:4];
  end
  assign z = ^(read | {2{second}});
endmodule
"""
#: The same with other names, another order, a submodule, no initial value, and registers put together.
RENAMED = """
module adder(input [3:0] x, input [3:0] y, output [3:0] s);
  assign s = y + x;
endmodule
module unit(input [3:0] b, input rst, input clk, input [3:0] a, output z, output [3:0] o);
  reg [7:0] kept [3:0];
  reg [15:0] pair;
  reg [3:0] out;
  wire [3:0] total;
  wire [7:0] fetched = pair[15:8];
  adder part(.x(a), .y(b), .s(total));
  assign o = out;
  always @(posedge clk) out <= pair[4] ? pair[3:0] : fetched[7:4] ^ pair[7:4];
  always @(posedge clk) begin
    pair <= {kept[b[1:0]], total, pair[7:4] & a};
    kept[a[1:0]] <= {pair[7:4], pair[3:0]};
    if (rst) pair[7:4] <= 4'd0;
  end
  assign z = ^{fetched | {pair[3:0], pair[3:0]}};
endmodule
"""


def written(folder, text, top):
    folder.mkdir()
    (folder / "some.v").write_text(text)
    (folder / "manifest.json").write_text(json.dumps({"top": top, "verilog": "some.v"}))
    return folder


def found(tmp_path, before, after, top="top"):
    pair = written(tmp_path / "before", before, "top"), written(tmp_path / "after", after, top)
    (tmp_path / "work").mkdir()
    return compare(*pair, tmp_path / "work")[-1]


@pytest.mark.synth
def test_other_names_and_orders_are_the_same(tmp_path):
    assert found(tmp_path, PLAIN, RENAMED, "unit") == []


@pytest.mark.synth
@pytest.mark.parametrize("old, new, said", [
    ("first <= 0", "first <= 1", "output o"), ("memory[b[1:0]]", "memory[a[1:0]]", "output o"),
    ("{first, second}", "{second, first}", "output o"), ("posedge clk", "negedge clk", "output o"),
    ("input [3:0] b", "input [4:0] b", "inputs: b"),
])
def test_other_functions_are_different(tmp_path, old, new, said):
    assert old in PLAIN
    assert found(tmp_path, PLAIN, PLAIN.replace(old, new))[0] == said


@pytest.mark.synth
def test_more_logic_of_the_same_function_is_different(tmp_path):
    """Same values, but more cells: the area would differ. No product of two numbers below 16 is 226."""
    more = PLAIN.replace("assign z =", "wire [7:0] u = a * b;\n  assign z = (u == 226) ^")
    assert found(tmp_path, PLAIN, more)[0] == "output z"
