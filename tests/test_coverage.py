"""What is counted of a text that Verilator runs, and what is said of it.

Covers: cosim/simulate/verilator.py.
"""

import ctypes
import json
from collections import Counter
from random import Random
from types import SimpleNamespace

import pytest

from cosim.emit import emit_accelerator
from cosim.simulate.verilator import TOP, build_library
from hbfp.isa.instructions import Opcode, Unit, fields_of
from hbfp.isa.legal import RULES, Must
from hbfp.isa.registers import Cause
from tests.cosim.accelerator.corner_runs import SYSTEMS
from tests.coverage import __main__ as counted
from tests.coverage import directed, wild
from tests.coverage.__main__ import Count, main
from tests.coverage.constants import constants
from tests.coverage.designs import Counted
from tests.coverage.points import BRANCH, CONSTANT, LINE, TOGGLE, Covered, Point, Reason, covered, modules, read
from tests.coverage.reasons import REASONS

TEXT = """\
// A module.
module top(input clk, input [1:0] a, output reg [1:0] b, output [69:0] wide);
  assign wide = {68'h0, b};
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
        assert {what for what in rises if what.startswith("wide")} <= {"wide[0]:0->1"}    # each bit by itself
        assert ("wide[0]:0->1" in rises) == (a == 1)
    both = read(sorted(tmp_path.glob("*.dat")), starts, "a top")
    assert all(count == 2 for point, count in both.items() if point.kind == BRANCH)    # two edges that rise in each run
    assert all(point.line == 3 and point.module == "a top" for point in both if point.kind == BRANCH)


def test_what_was_reached_has_no_reason():
    text = {name: ["module", "if (a) b <= c;"] for name in ("m_w8", "n")}
    points = Counter({Point(BRANCH, "m_w8", 1, 3, "if"): 5, Point(BRANCH, "m_w8", 1, 3, "else"): 0,
                      Point(LINE, "m_w8", 1, 3, "case"): 0, Point(BRANCH, "n", 1, 3, "else"): 0})
    reason = Reason("high", "a is always high", "m_.*", r"if \(a\)", (BRANCH,))
    found, missing, used = covered(points, text, [reason])
    assert found == {BRANCH: Covered(3, 1, 1), LINE: Covered(1, 0, 0)} and found[BRANCH].share == 0.5
    assert [point.module for point in missing] == ["n", "m_w8"] and used == {reason: 1}
    assert covered(points, text, [])[0][BRANCH] == Covered(3, 1, 0)


def test_bits_have_reasons_by_their_numbers():
    """From a bit on, in each number of several; those of a memory whatever its word is."""
    text = {"m": ["module", "wire [15:0] a;"]}
    points = Counter({Point(TOGGLE, "m", 1, 3, f"{name}:0->1"): 0 for name in (
        "a[2]", "a[3]", "a[8]", "a[11]", "b[3]", "c[1][3]", "d")})
    _, missing, used = covered(points, text, [high := Reason("high", "long", kinds=(TOGGLE,), what="[ac]", least=3,
                                                             period=8)], {("m", "b", 3)})
    assert [point.what for point in missing] == ["a[2]:0->1", "a[8]:0->1", "d:0->1"]
    assert used == {high: 3, CONSTANT: 1}


PARTS = """\
module hbfp_part(clk, i, o);
  input clk;
  input [3:0] i;
  output reg [3:0] o;
  wire [5:0] wide;
  reg kept = 1'h1;
  assign wide = {2'h0, i};
  always @(posedge clk) begin
    o <= (wide[1]) ? 4'h8 : 4'h9;
    kept <= kept;
  end
endmodule
module top(clk, i, o, p);
  input clk;
  input [3:0] i;
  output [3:0] o;
  output [3:0] p;
  hbfp_part a (
    .clk(clk), .i({i[3:1], 1'h0}), .o(o)
  );
  hbfp_part b (
    .clk(clk), .i({2'h0, i[1:0]}), .o(p)
  );
endmodule
"""


def test_a_constant_that_moves_is_told():
    """It may rise as the first values come, and not fall then."""
    points = Counter({Point(TOGGLE, "m", 1, 3, "a[2]:0->1"): 1, Point(TOGGLE, "m", 1, 3, "a[2]:1->0"): 0})
    assert covered(points, {"m": ["", ""]}, [], {("m", "a", 2)})[0][TOGGLE] == Covered(2, 1, 1)
    points[Point(TOGGLE, "m", 1, 3, "a[2]:1->0")] = 3
    with pytest.raises(RuntimeError, match=r"^m a\[2\] is constant in the netlist, and has risen and fallen$"):
        covered(points, {"m": ["", ""]}, [], {("m", "a", 2)})


def test_constants_are_those_of_every_instance():
    bits = {"hbfp_part": {"wide": (4, 5), "kept": (0,), "o": (1, 2, 3)}, TOP: {"o": (1, 2, 3), "p": (1, 2, 3)}}
    assert constants(PARTS, "top") == {
        (module, name, bit) for module, names in bits.items() for name, each in names.items() for bit in each}


def test_counts_of_designs_are_joined():
    """What one never reached stays; a shared bit is constant in both, and a shared module the same."""
    one = Count(Counter({"a": 1, "b": 0}), {"m": ["x"], "n": ["y"]}, {("m", "a", 0), ("m", "b", 0), ("n", "a", 0)})
    other = Count(Counter({"a": 2, "c": 0}), {"m": ["x"]}, {("m", "a", 0)})
    both = one + other
    assert both.points == {"a": 3, "b": 0, "c": 0} and list(both.points) == ["a", "b", "c"]
    assert both.constant == {("m", "a", 0), ("n", "a", 0)}
    with pytest.raises(RuntimeError, match="^m has two texts$"):
        one + Count(text={"m": ["z"]})


def test_what_has_run_is_kept(tmp_path, monkeypatch):
    """Each run by itself: another beside it, or what fails behind it, does not repeat it."""
    (tmp_path / "top.v").write_text(TEXT)
    point, called = Point(LINE, "top", 4, 0, "if"), []

    def first(*_):
        called.append(1)

    def second(*_):
        called.append(2)
        if called.count(2) == 1:
            raise RuntimeError("it fails")
    monkeypatch.setattr(counted, "read", lambda *_: Counter({point: called[-1]}))
    monkeypatch.setattr(counted, "constants", lambda *_: set())
    monkeypatch.setattr(counted.files, "cache", lambda name: tmp_path / name)
    monkeypatch.setattr(Counted, "emitted", lambda _: SimpleNamespace(verilog=tmp_path / "top.v", top="top"))
    monkeypatch.setitem(counted.PRESETS, "two", Counted(SYSTEMS["plain"], (first, second)))
    with pytest.raises(RuntimeError, match="^it fails$"):
        counted.count("two", 1)
    for _ in range(2):
        assert counted.count("two", 1).points == {point: 3} and called == [1, 2, 2]
    counted.count("two", 2)
    assert called == [1, 2, 2, 1, 2]


def test_reasons_are_of_what_they_name():
    """None of them takes whatever there is."""
    assert all(reason.text or reason.what != ".*" for reason in REASONS)
    assert len({reason.why for reason in REASONS}) == len({reason.name for reason in REASONS}) == len(REASONS)


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_anything_is_legal_and_moves_every_bit(system):
    """That it is legal, it checks; bits that stay are those of fields that a rule bounds or rounds."""
    pick = Random(0)
    for opcode in map(Opcode, Unit):
        every = [wild.anything(pick, opcode, system) for _ in range(300)]
        bounded = {name for rule in RULES[opcode] if rule.must in (Must.RANGE, Must.MULTIPLE) for name in rule.fields}
        for field in fields_of(opcode, system.extras):
            moved = {each[field.name] for each in every}
            still = {bit for bit in range(field.width) if len({value >> bit & 1 for value in moved}) == 1}
            assert len(moved) > 1 and (field.name in bounded or not still), f"{opcode.name} {field.name} {still}"


@pytest.mark.cosim
@pytest.mark.slow
def test_wild_instructions_on_the_verilog(monkeypatch):
    """They have the golden machine's faults, short programs do what they should, and the check of faults can fail."""
    manifest = emit_accelerator(SYSTEMS["plain"])
    monkeypatch.setattr(wild, "FAULTS", 3)
    for run in (wild.held, wild.faults, wild.far, directed.scalars, directed.doorbells, directed.drains,
                directed.waits):
        run(manifest, SYSTEMS["plain"], 0)
    monkeypatch.setattr(wild, "CAUSES", {Cause.MISALIGNED})
    with pytest.raises(AssertionError):
        wild.faults(manifest, SYSTEMS["plain"], 0)


@pytest.mark.cosim
@pytest.mark.slow
def test_a_dispatcher_is_counted(tmp_path):
    """All lines and branches of a small one that can be reached."""
    assert main(["dispatcher", "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert [found["rows"][kind]["share"] for kind in (LINE, BRANCH)] == [100, 100]
    assert found["rows"][TOGGLE]["share"] > 95 and set(found["reasons"]) <= {each.name for each in (CONSTANT, *REASONS)}


def test_a_design_that_there_is_not(capsys):
    with pytest.raises(SystemExit):
        main(["another"])
    assert "another: must be one of one context, dispatched, " in capsys.readouterr().err
