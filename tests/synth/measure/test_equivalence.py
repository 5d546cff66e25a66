"""Mapped netlists equal their Verilog, for all inputs and states."""

import re

import pytest

from hbfp.options import design_from_values
from synth.measure.expected import EXPECTED_UNITS
from synth.tools import yosys
from synth.tools.errors import SynthError
from synth.tools.library import load
from tests.cases import slow
from tests.synth.tiny import ADDING, LIBERTY

from . import equivalence
from .equivalence import mapped_units, prove_equal

pytestmark = pytest.mark.synth


def parts(name, *how):
    unit, values = EXPECTED_UNITS[name]
    return list(mapped_units(design_from_values(values), unit, *how))


@pytest.mark.parametrize("name", ["encode_lane_m8", "element_m4", slow("element_m8"), "align_m8", "sequencer"])
def test_netlist_equals_verilog(name):
    for unit, mapped in parts(name):
        prove_equal(unit, mapped)


def test_netlist_of_library_cells_equals_verilog(tmp_path):
    (tmp_path / "cells.lib").write_text(LIBERTY)
    for unit, mapped in parts("element_m4", "area", load(tmp_path / "cells.lib")):
        assert "  NAND2 " in mapped and "module NAND2(" in mapped
        prove_equal(unit, mapped)


def test_netlist_of_a_library_s_full_adders_equals_verilog(tmp_path):
    """A cheap one is in use, a dear one is not."""
    for price, times in ((60, True), (600, False)):
        (tmp_path / f"{price}.lib").write_text(ADDING.replace("area : 100", f"area : {price}"))
        (unit, mapped), = parts("element_m4", "adders", load(tmp_path / f"{price}.lib"))
        assert ("  PLUS " in mapped and "module PLUS(" in mapped) is times
        prove_equal(unit, mapped)


def test_gated_clock_equals_verilog():
    """Its gate is a state, too; and to open it at the other edge is another netlist."""
    values = {"mantissa": 3, "rows": 2, "group": (1, 1), "weight_clock": "gated"}
    (unit, mapped), = mapped_units(design_from_values(values), "group")
    prove_equal(unit, mapped)
    wrong = re.sub(r"negedge clk", "posedge clk", mapped)
    assert mapped.count("negedge clk") == 1
    with pytest.raises(SynthError, match=r"^Yosys failed: "):
        prove_equal(unit, wrong)


def test_units_with_units_inside_are_cut_there():
    design = design_from_values({"mantissa": 2, "rows": 2, "group": (1, 1)})
    found = list(mapped_units(design, "array"))
    assert any(unit.uses for unit, _ in found)
    for unit, mapped in found:
        prove_equal(unit, mapped)


@pytest.mark.parametrize("name, what, instead", [
    ("encode_lane_m4", r"~\((\w+) & (\w+)\)", r"~(\1 | \2)"),
    slow(("element_m8", r"~\((\w+) & (\w+)\)", r"~(\1 | \2)")),
    ("element_m4", r"if \(west__swap\) complements\[1\]", r"if (rst) complements[1]"),
    ("element_m4", r"posedge clk", r"negedge clk")])
def test_wrong_netlist_is_found(name, what, instead):
    (unit, mapped), = parts(name)
    wrong = re.sub(what, instead, mapped, count=1)
    assert wrong != mapped
    with pytest.raises(SynthError, match=r"^Yosys failed: ERROR: .+ \(log: \S+\)$"):
        prove_equal(unit, wrong)


def test_no_answer_in_time(monkeypatch):
    def late(*args, timeout, **kwargs):
        raise yosys.subprocess.TimeoutExpired(args, timeout)
    (unit, mapped), = parts("encode_lane_m4")
    yosys.find()
    monkeypatch.setattr(yosys.subprocess, "run", late)
    with pytest.raises(SynthError, match=rf"^Yosys gave no answer in {equivalence.LIMIT} s \(log: .*yosys.log\)$"):
        prove_equal(unit, mapped)
