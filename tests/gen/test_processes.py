"""Clocked processes: one for a clock, each condition asked once, and what a register takes last is still last."""

import pytest

from gen.module import Module
from gen.processes import together

HEAD = """\
module top(clk, rst, a, b, o, q);
  input clk;
  input rst;
  input a;
  input [1:0] b;
  output o;
  reg o;
  output [1:0] q;
  reg [1:0] q;
"""


def process(*lines, clock="posedge clk"):
    return "\n".join([f"  always @({clock}) begin", *(f"    {line}" for line in lines), "  end", ""])


def after(*processes):
    module = Module(f"{HEAD}{''.join(processes)}endmodule")
    together(module)
    return [line.strip() for item in module.items for line in item.lines()]


def test_conditions_are_asked_once_and_the_reset_is_last():
    first = process("if (a) begin", "  o <= 1'h1;", "end", "if (rst) begin", "  o <= 1'h0;", "end")
    second = process("if (a) begin", "  q <= b;", "end", "if (rst) begin", "  q <= 2'h0;", "end")
    assert after(first, second) == [
        "always @(posedge clk) begin", "if (a) begin", "o <= 1'h1;", "q <= b;", "end",
        "if (rst) begin", "o <= 1'h0;", "q <= 2'h0;", "end", "end"]


def test_conditions_inside_conditions_are_asked_once():
    def inside(statement):
        return process("if (a) begin", "  if (b[0]) begin", f"    {statement}", "  end", "end")
    assert after(inside("o <= 1'h1;"), inside("q <= b;")) == [
        "always @(posedge clk) begin", "if (a) begin", "if (b[0]) begin", "o <= 1'h1;", "q <= b;", "end", "end", "end"]


def test_what_is_set_between_stays_between():
    assert after(process("if (a) begin", "  o <= 1'h1;", "end", "if (b[0]) begin", "  o <= 1'h0;", "end",
                         "if (a) begin", "  o <= b[1];", "end")) == [
        "always @(posedge clk) begin", "if (a) o <= 1'h1;", "if (b[0]) o <= 1'h0;", "if (a) o <= b[1];", "end"]


def test_other_clocks_are_other_processes():
    assert after(process("o <= a;"), process("q <= b;", clock="negedge clk")) == [
        "always @(posedge clk) o <= a;", "always @(negedge clk) q <= b;"]


def test_cases_of_one_subject_are_one():
    def cases(first, second):
        return process("casez (b)", "  2'h0:", f"    {first}", "  2'h1:", f"    {second}", "endcase")
    assert after(cases("o <= a;", "o <= 1'h0;"), cases("q <= b;", "q <= 2'h3;")) == [
        "always @(posedge clk) begin", "casez (b)", "2'h0: begin", "o <= a;", "q <= b;", "end",
        "2'h1: begin", "o <= 1'h0;", "q <= 2'h3;", "end", "default: ;", "endcase", "end"]


@pytest.mark.parametrize("first, found", [
    ("", ["always @(posedge clk) if (!a) o <= b[0];"]),
    ("o <= 1'h1;", ["always @(posedge clk) begin", "if (a) o <= 1'h1;", "else o <= b[0];", "end"]),
])
def test_no_if_has_an_else_alone(first, found):
    assert after(process("(* full_case = 32'd1 *)", "if (a) begin", *[f"  {first}"] * bool(first), "end else begin",
                         "  o <= b[0];", "end")) == found
