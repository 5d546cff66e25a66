"""Clock periods need a timer, and say so."""

import re

import pytest

from hbfp import entries
from synth.__main__ import main
from synth.measure import partition, timing
from synth.measure.timing import structural
from synth.tools import opensta


def test_no_timer_no_periods(monkeypatch, tmp_path):
    monkeypatch.setattr(opensta, "OPENSTA", tmp_path / "opensta")
    monkeypatch.setattr(opensta.shutil, "which", lambda command: None)
    assert opensta.find() is None
    assert timing.periods(None, "area", None) == {}


def test_local_timer_is_found(monkeypatch, tmp_path):
    def unpack(folder):
        (folder / "usr" / "bin").mkdir(parents=True)
        (folder / "usr" / "bin" / "sta").write_text("program")

    monkeypatch.setattr(opensta, "OPENSTA", tmp_path / "opensta")
    monkeypatch.setattr(opensta.shutil, "which", lambda command: None)
    program = entries.entry(tmp_path / "opensta", unpack) / "usr" / "bin" / "sta"
    assert opensta.find() == str(program)
    program.write_text("")    # what was cut short is not run
    assert opensta.find() is None


def test_timing_of_generic_gates_is_refused(capsys, tmp_path):
    """No library, no delays: said before anything is synthesised."""
    with pytest.raises(SystemExit) as caught:
        main(["--recipe", "generic", "--timing", "--out", str(tmp_path / "out")])
    assert caught.value.code == 2
    assert capsys.readouterr().err == ("python -m synth: error: --timing: needs OpenSTA and a cell library: "
                                       "python -m synth fetch\n")
    assert not (tmp_path / "out").exists()


RAM = """module hbfp_ram_d4_w3_g1(r_en, r_addr, w_addr, r_data, rst, clk, w_en, w_data);
  input clk;
  wire clk;
  input [1:0] r_addr;
  wire [1:0] r_addr;
  output [2:0] r_data;
  wire [2:0] r_data;
  input r_en;
  wire r_en;
  input rst;
  wire rst;
  input [1:0] w_addr;
  wire [1:0] w_addr;
  input [2:0] w_data;
  wire [2:0] w_data;
  input w_en;
  wire w_en;
endmodule
"""


@pytest.mark.parametrize("port", ["output [2:0] r_data;", "output reg [2:0] r_data;",
                                  "output reg [2:0] r_data = 3'h0;"])
def test_memories_are_registers_at_their_ports(port):
    """Every input has one, and leads to the output, else the paths that end there would be swept away; a word is there
    when a memory has read it.
    """
    ram = RAM.replace("output [2:0] r_data;\n  wire [2:0] r_data;", port)
    text = timing.registered(partition.Unit("hbfp_ram_d4_w3_g1", "ram", 1, ram)).verilog
    names = {"r_en": 1, "r_addr": 2, "w_addr": 2, "w_en": 1, "w_data": 3}
    assert all(f"{name}_q <= {name};" in text for name in names)
    assert all(f"{name}_q[{n}]" in text for name, width in names.items() for n in range(width))
    words = re.findall(r"hbfp_memory_access word_\d\(\.clk\(clk\), .*\.q\(r_data\[(\d)\]\)\);", text)
    assert words == ["0", "1", "2"]
    assert "(* blackbox *)\nmodule hbfp_memory_access(" in text


@pytest.mark.parametrize("line, lines", [
    ("assign { a[1], \\c.$1 [4:3] } = { b, 2'h1 };",
     ["assign a [1] = b ;", "assign \\c.$1 [4] = 1'b0 ;", "assign \\c.$1 [3] = 1'b1 ;"]),
    ("assign { v, e } = { \\x , w };",
     ["assign v [1] = \\x ;", "assign v [0] = w [2] ;", "assign e = w [1] ;"]),
    ("assign { v[1], e } = 2'd2;", ["assign v [1] = 1'b1 ;", "assign e = 1'b0 ;"]),
    ("assign a = { b, c };", ["assign a = { b, c };"]),
])
def test_concatenations_are_taken_apart(line, lines):
    """OpenSTA reads none on the left of an assignment."""
    head = "  wire [1:0] v;\n  wire signed [2:1] w;\n"
    assert structural(f"{head}  {line}\n").splitlines()[2:] == [f"  {each}" for each in lines]


@pytest.mark.parametrize("wire, capacitance", [(0, "0"), (2, "0.002"), (12.5, "0.0125")])
def test_wires_are_stated(wire, capacitance):
    """In pF, the unit of that file, for each sink; else OpenSTA takes the wires that a library has by default."""
    text = timing.memories(0.3, wire)
    assert f"wire_load (stated) {{ resistance : 0; capacitance : {capacitance};" in text
    assert text.count("{") == text.count("}")
    assert "\nset_wire_load_model -name stated\nreport_checks" in timing._SCRIPT
