"""What is counted of a text that Verilator runs, and what is said of it.

Covers: cosim/simulate/verilator.py.
"""

import ctypes
from collections import Counter

import pytest

from cosim.simulate.verilator import build_library
from tests.coverage.points import BRANCH, LINE, TOGGLE, Covered, Point, Reason, covered, modules, read
from tests.coverage.reasons import REASONS

TEXT = """\
// A module.
module top(input clk, input [1:0] a, output reg [1:0] b);
  always @(posedge clk) begin
    if (a[0]) b <= a;
    else b <= 2'h0;
  end
endmodule
"""
#: Runs it with an input, for two rising edges of the clock.
DRIVER = """\
#include "Vdut.h"
#include "verilated.h"
extern "C" __attribute__((visibility("default"))) void run(int a, const char* path) {
    VerilatedContext context;
    Vdut top{&context};
    top.a = a;
    for (int edge = 0; edge < 4; ++edge) {
        top.clk = edge & 1;
        top.eval();
    }
    context.coveragep()->write(path);
}
"""


@pytest.mark.cosim
def test_runs_of_a_text_are_added_up(tmp_path):
    (tmp_path / "top.v").write_text(TEXT)
    run = ctypes.CDLL(str(build_library(tmp_path / "top.v", "top", {"driver.cpp": DRIVER}, level="-O0",
                                        coverage=True))).run
    starts = {module: start for module, (start, _) in modules(TEXT, "top").items()}
    for a, reached in ((1, {"if"}), (2, {"else"})):
        run(a, str(tmp_path / f"{a}.dat").encode())
        points = read([tmp_path / f"{a}.dat"], starts, "a top")
        branches = {point.what: count for point, count in points.items() if point.kind == BRANCH}
        assert set(branches) == {"if", "else"} and {what for what, count in branches.items() if count} == reached
        rises = {point.what for point, count in points.items() if count and point.kind == TOGGLE}
        assert (f"a[{a - 1}]:0->1" in rises) and (f"a[{2 - a}]:0->1" not in rises)
    both = read(sorted(tmp_path.glob("*.dat")), starts, "a top")
    assert all(count == 2 for point, count in both.items() if point.kind == BRANCH)    # two edges that rise in each run
    assert all(point.line == 2 and point.module == "a top" for point in both if point.kind == BRANCH)


def test_what_was_reached_has_no_reason():
    text = {name: ["module", "if (a) b <= c;"] for name in ("m_w8", "n")}
    points = Counter({Point(BRANCH, "m_w8", 1, 3, "if"): 5, Point(BRANCH, "m_w8", 1, 3, "else"): 0,
                      Point(LINE, "m_w8", 1, 3, "case"): 0, Point(BRANCH, "n", 1, 3, "else"): 0})
    reason = Reason("a is always high", "m_.*", r"if \(a\)", (BRANCH,))
    found, missing, used = covered(points, text, [reason])
    assert found == {BRANCH: Covered(3, 1, 1), LINE: Covered(1, 0, 0)} and found[BRANCH].share == 0.5
    assert [point.module for point in missing] == ["n", "m_w8"] and used == {reason: 1}
    assert covered(points, text, [])[0][BRANCH] == Covered(3, 1, 0)


def test_reasons_are_of_lines_that_they_name():
    """None of them takes whatever there is."""
    assert all(reason.text for reason in REASONS) and len({reason.why for reason in REASONS}) == len(REASONS)
