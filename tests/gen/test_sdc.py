"""Constraints beside the Verilog: what they say, and that a timer reads them."""

import json
import re
import subprocess

import pytest

from gen.__main__ import main
from synth.measure import timing
from synth.tools import opensta

WORDS = ["--unit", "side", "--pipeline", "1", "--rows", "4", "--block", "1,4"]


def test_every_port_has_its_line(tmp_path):
    main([*WORDS, "--period", "5", "--out", str(tmp_path)])
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["constraints"] == {
        "file": f"{manifest['top']}.sdc", "clock": "clk", "period_ns": 5.0, "input_delay_ns": 1.0,
        "output_delay_ns": 1.0}
    first, *lines = (tmp_path / manifest["constraints"]["file"]).read_text().splitlines()
    assert first == "create_clock -name clk -period 5 [get_ports clk]"
    said = {re.fullmatch(r"set_(in|out)put_delay 1 -clock clk \[get_ports (\w+)\]", line).groups() for line in lines}
    assert said - {("in", "rst")} == {(port["direction"], name) for name, port in manifest["ports"].items()}


def test_a_gated_clock_is_checked(tmp_path):
    for name in ("free", "gated"):
        main(["--unit", "group", "--rows", "4", "--block", "1,4", "--weight-clock", name, "--period", "5", "--out",
              str(tmp_path / name)])
        top = json.loads((tmp_path / name / "manifest.json").read_text())["top"]
        lines = (tmp_path / name / f"{top}.sdc").read_text().splitlines()
        assert lines.count("set_clock_gating_check -setup 0 -hold 0 [get_clocks clk]") == (name == "gated")


def test_without_a_period_there_are_none(tmp_path):
    main([*WORDS, "--out", str(tmp_path)])
    assert "constraints" not in json.loads((tmp_path / "manifest.json").read_text())
    assert not list(tmp_path.glob("*.sdc"))


@pytest.mark.parametrize("words, message", [
    (["--unit", "fp32.add", "--period", "5"], "--period 5: must not be given, hbfp_add_gradual has no clock"),
    (["--period", "0"], "--period 0: must be 0.01 to 1000"),
    (["--period", "fast"], "--period fast: must be 0.01 to 1000"),
])
def test_refused(words, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        raise SystemExit(main([*words, "--out", str(tmp_path / "out")]))
    assert caught.value.code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(opensta.find() is None, reason="no OpenSTA: python -m synth fetch")
def test_a_timer_reads_them(tmp_path):
    """A register between one input and one output of the same module: the slack is what the delays leave."""
    main([*WORDS, "--period", "5", "--out", str(tmp_path)])
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    ports = {name: port["width"] for name, port in manifest["ports"].items()} | {"clk": 1, "rst": 1}
    ways = {name: port["direction"] + "put" for name, port in manifest["ports"].items()}
    ways |= {"clk": "input", "rst": "input"}
    lines = [f"module {manifest['top']}({', '.join(ports)});"]
    lines += [f"  {ways[name]} [{width - 1}:0] {name};" if width > 1 else f"  {ways[name]} {name};"
              for name, width in ports.items()]
    lines += ["  hbfp_memory_access one (.clk(clk), .d(i[0]), .q(o[0]));", "endmodule"]
    (tmp_path / "netlist.v").write_text("\n".join(lines) + "\n")
    (tmp_path / "cells.lib").write_text(timing.memories(1.5))
    (tmp_path / "run.tcl").write_text(
        f"read_liberty cells.lib\nread_verilog netlist.v\nlink_design {manifest['top']}\n"
        f"read_sdc {manifest['constraints']['file']}\nreport_checks -to [get_ports o]\nexit\n")
    done = subprocess.run([opensta.find(), "-no_splash", "-exit", "run.tcl"], cwd=tmp_path, capture_output=True,
                          text=True)
    assert "Error" not in done.stdout + done.stderr
    assert re.findall(r"(-?[\d.]+) +slack", done.stdout) == ["2.50"]
