"""Random designs: drawn over every option, and judged rightly, whole and broken."""

import dataclasses
import random

import pytest

from cosim.work.random_designs import check, draw, parts, plant
from hbfp.arithmetic import KINDS
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.options import design_from_values

TEXT = """\
module top(input [3:0] a, output [3:0] o, output p);
  wire [3:0] \\$7 ;
  wire [1:0] \\o.bits ;
  assign o = a + 4'h1;
  assign p = a == 4'h2;
  assign \\$7  = a & 4'h3;
  assign \\o.bits [1] = \\$7 [2] | \\$7 [3];
  assign \\o.bits [0] = | \\$7 ;
endmodule
"""


def test_draws_vary_every_option():
    designs = [draw(1, number) for number in range(300)]
    assert designs == [draw(1, number) for number in range(300)]
    assert designs != [draw(2, number) for number in range(300)]
    for part, holds in ((Design, designs), (HBFPFormat, [design.format for design in designs])):
        for field in dataclasses.fields(part):
            assert len({getattr(item, field.name) for item in holds}) > 1, field.name
    assert {design.format.rounding for design in designs} == {"rne", "stochastic", "truncate"}
    assert {design.arithmetic for design in designs} == set(KINDS)
    assert {min(design.segments, 2) for design in designs} == {min(design.block_tiles, 2) for design in designs} == {
        1, 2}


def test_parts_of_gradual_designs_are_the_converter():
    design = Design(format=HBFPFormat(subnormals="gradual"))
    assert parts(design) == ("encode", "encode_lane") and parts(Design()) == ("core",)


def test_a_fault_is_one_operator():
    found = {plant(TEXT, random.Random(seed)) for seed in range(30)}
    assert {fault.after for _, fault in found} == {
        "assign o = a - 4'h1;", "assign p = a != 4'h2;", "assign \\$7  = a | 4'h3;",
        "assign \\o.bits [1] = \\$7 [2] & \\$7 [3];"}
    for text, fault in found:
        lines = zip(TEXT.splitlines(), text.splitlines(), strict=True)
        changed = [(number, was.strip(), now.strip()) for number, (was, now) in enumerate(lines, 1) if was != now]
        assert changed == [(fault.line, fault.before, fault.after)]


@pytest.mark.slow
@pytest.mark.cosim
def test_verdicts():
    """One design passes whole and fails with a changed operator."""
    design = design_from_values({"rows": 2, "cols": 1, "block": (1, 3), "ragged": True, "mantissa": 3, "depth": 2,
                                 "rounding": "truncate", "growth": 3, "accumulate": "aligned"})
    assert check(design)["verdict"] == "passed"
    entry = check(design, fault=random.Random(10))
    assert entry["verdict"] == "FAILED" and entry["problems"], entry
