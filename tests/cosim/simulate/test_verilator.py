"""Verilator is found, its builds are kept by content, and what fails says so in one line."""

import os
from pathlib import Path

import pytest

from cosim.simulate import verilator
from cosim.simulate.verilator import BuildError, build_library, check_system_tools, find_tool

VERILOG = "module top(input clk, input [7:0] i, output reg [7:0] o); always @(posedge clk) o <= o + i; endmodule\n"
DRIVER = {"driver.cpp": '#include "Vdut.h"\nextern "C" __attribute__((visibility("default"))) int two() '
                        "{ Vdut dut; dut.i = 2; dut.clk = 0; dut.eval(); dut.clk = 1; dut.eval(); return dut.o; }\n"}


def build(folder, **options):
    """The design in a folder, built in a cache of its own; what all models link comes from the usual one."""
    return build_library(folder / "top.v", "top", DRIVER, level="-O0", cache=folder / "cache", **options)


def fake_verilator(folder, monkeypatch, version):
    program = folder / "verilator"
    program.write_text(f"#!/bin/sh\necho 'Verilator {version} 2025-01-01 rev fake'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    find_tool.cache_clear()
    return program


def test_new_verilator_on_path_is_taken(tmp_path, monkeypatch):
    program = fake_verilator(tmp_path, monkeypatch, "5.036")
    try:
        assert find_tool().program == program and find_tool().version == "5.036"
        assert "VERILATOR_ROOT" not in set(find_tool().environment()) - set(os.environ)
    finally:
        find_tool.cache_clear()


def test_ccache_on_path_compiles(tmp_path, monkeypatch):
    """Every file, and nothing else, with what it must be told beside a compiled header."""
    program, (source, log) = tmp_path / "ccache", (tmp_path / name for name in ("top.v", "said"))
    program.write_text(f'#!/bin/sh\necho "$1 $CCACHE_SLOPPINESS" >> {log}\nexec "$@"\n')
    program.chmod(0o755)
    source.write_text(VERILOG)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CCACHE_SLOPPINESS", raising=False)
    assert build(tmp_path).exists()
    said = log.read_text().splitlines()
    assert said and set(said) == {"g++ pch_defines,time_macros"}


@pytest.mark.parametrize("version", ["5.006", "4.228", "UNKNOWN"])
def test_old_verilator_on_path_is_passed_by(tmp_path, monkeypatch, version):
    fake_verilator(tmp_path, monkeypatch, version)
    try:
        tool = find_tool()
        assert tool.root is not None and tool.environment()["MAKEFLAGS"] == verilator.MAKEFLAGS
    finally:
        find_tool.cache_clear()


@pytest.mark.parametrize("name", ["g++", "make", "perl"])
def test_missing_tool(tmp_path, monkeypatch, name):
    for other in {"g++", "make", "perl"} - {name}:
        (tmp_path / other).write_text("#!/bin/sh\n")
        (tmp_path / other).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError) as caught:
        check_system_tools()
    assert str(caught.value) == f"{name} is missing: apt-get install {name}"


@pytest.mark.cosim
def test_same_content_is_built_once(tmp_path):
    import ctypes

    (tmp_path / "top.v").write_text(VERILOG)
    steps = []
    first = build(tmp_path, progress=lambda *step: steps.append(step))
    assert steps[-1][0] == steps[-1][1] and ctypes.CDLL(str(first)).two() == 2
    count = len(steps)
    assert build(tmp_path, progress=steps.append) == first
    assert len(steps) == count
    (tmp_path / "top.v").write_text(VERILOG.replace("+ i", "+ 2 * i"))
    second = build(tmp_path)
    assert second != first and ctypes.CDLL(str(second)).two() == 4


@pytest.mark.cosim
def test_harmed_library_is_built_again(tmp_path, capfd):
    """A library that was cut short is no bus error."""
    import ctypes

    (tmp_path / "top.v").write_text(VERILOG)
    library = build(tmp_path)
    library.write_bytes(b"\x7fELF")
    assert ctypes.CDLL(str(build(tmp_path))).two() == 2
    assert capfd.readouterr().err == f"{library.parent}: libdut.so is not as it was made; making it again\n"


@pytest.mark.cosim
def test_failed_build_names_its_log(tmp_path):
    (tmp_path / "top.v").write_text(VERILOG.replace("i;", "nothing;"))
    with pytest.raises(BuildError, match=r"^verilator failed; see .*build\.log$") as caught:
        build(tmp_path)
    log = str(caught.value).split("see ")[1]
    assert "nothing" in Path(log).read_text()


@pytest.mark.cosim
def test_warnings_stop_a_build(tmp_path):
    (tmp_path / "top.v").write_text(VERILOG.replace("o + i", "o + 9'd300"))
    with pytest.raises(BuildError, match=r"^verilator failed; see \S+\.failed/\S+$"):
        build(tmp_path)
