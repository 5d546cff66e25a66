"""What nextpnr says, read."""

import subprocess
from pathlib import Path

import pytest

from synth.tools import nextpnr
from synth.tools.errors import SynthError


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


LOG = """Info: Device utilisation:
Info: \t          TRELLIS_IO:       6/    197     3%
Info: \t              DP16KD:      57/     56   101%
Info: \t          MULT18X18D:       0/     28     0%
Info: \t        TRELLIS_COMB:   20000/  24288    82%
"""


def test_utilisation_of_a_log():
    assert nextpnr.utilisation(LOG) == {"TRELLIS_IO": (6, 197), "DP16KD": (57, 56), "TRELLIS_COMB": (20000, 24288)}


@pytest.mark.parametrize("said, want", [
    ("ERROR: Unable to place cell 'x', no BELs remaining",
     "does not fit: DP16KD 57 of 56, TRELLIS_COMB 20,000 of 24,288 (log: {log})"),
    ("ERROR: no such device", "nextpnr failed: ERROR: no such device (log: {log})")])
def test_design_that_is_not_placed(monkeypatch, tmp_path, said, want):
    def failed(*args, **kwargs):
        (tmp_path / "nextpnr.log").write_text(LOG)
        return subprocess.CompletedProcess([], 1, "", said + "\n")
    monkeypatch.setattr(nextpnr.subprocess, "run", failed)
    with pytest.raises(SynthError) as caught:
        nextpnr.place(tmp_path, "nextpnr", [], 1, 1)
    assert str(caught.value) == want.format(log=tmp_path / "nextpnr.log")


def test_design_that_takes_too_long(monkeypatch):
    def late(*args, **kwargs):
        raise subprocess.TimeoutExpired(args[0], kwargs["timeout"])
    monkeypatch.setattr(nextpnr.subprocess, "run", late)
    with pytest.raises(SynthError, match=r"^nextpnr gave no answer in 7 s \(log: nextpnr.log\)$"):
        nextpnr.place(Path(), "nextpnr", [], 1, 7)


def test_critical_path_of_the_slowest_clock():
    def step(kind, delay, cell, net=None):
        return {"type": kind, "delay": delay, "to": {"cell": cell}} | ({"net": net} if net else {})
    clocks = {"fast": {"achieved": 60.0, "constraint": 25.0}, "clk": {"achieved": 80.04, "constraint": 400.0}}
    report = {"fmax": clocks, "critical_paths": [
        {"from": "<async>", "to": "posedge clk", "path": [step("routing", 9, "pin")]},
        {"from": "posedge fast", "to": "posedge fast", "path": [step("clk-to-q", 0.5, "a")]},
        {"from": "posedge clk", "to": "posedge clk", "path": [
            step("clk-to-q", 0.524, "dut.a"), step("routing", 1.2, "dut.b", "dut.n"), step("setup", 0, "dut.b")]}]}
    assert nextpnr.fmax(report) == 80.0
    assert nextpnr.critical(report) == [
        {"ns": 0.52, "what": "clk-to-q", "net": None, "cell": "dut.a"},
        {"ns": 1.2, "what": "routing", "net": "dut.n", "cell": "dut.b"},
        {"ns": 0, "what": "setup", "net": None, "cell": "dut.b"}]
