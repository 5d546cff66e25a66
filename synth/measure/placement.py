"""Clocks of FPGA designs: placed and routed by nextpnr, between two chains of registers."""

import functools
import json
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

from hbfp import files, yowasp

from ..tools import recipes, yosys
from ..tools.errors import SynthError
from . import partition
from .area import generate

#: Family -> device that is placed on, and what makes the netlist and the call fit it.
DEVICES = {
    "ecp5": ("LFE5U-85F", ["--85k", "--package", "CABGA756", "--lpf-allow-unconstrained"]),
    "ice40": ("iCE40 UP5K", ["--up5k", "--package", "sg48", "--pcf-allow-unconstrained"]),
    "ice40-logic": ("iCE40 HX8K", ["--hx8k", "--package", "ct256", "--pcf-allow-unconstrained"]),
}
#: Of the placement: one number, so that a figure can be had again.
SEED = 1
_TARGET = 400    # MHz; more than any of these reaches


def device(recipe):
    """Name and options of the device of a recipe; None where nextpnr has none."""
    return DEVICES.get(recipe) or DEVICES.get(recipe.removesuffix("-logic"))


@functools.cache
def find(family):
    """nextpnr of a family and its version: on PATH, else the wheel's; None without."""
    scripts = Path(sysconfig.get_path("scripts"))
    for command in (shutil.which(f"nextpnr-{family}"), str(scripts / f"yowasp-nextpnr-{family}")):
        if command and Path(command).exists():
            yowasp.prepare(command)
            done = subprocess.run([command, "--version"], capture_output=True, text=True)
            found = re.search(r"Version (?:nextpnr-)?([^)\s]+)", done.stdout + done.stderr)
            if found:
                return command, found[1]
    return None


def harness(top, ports, clocked):
    """Verilog of ``harness``: registers on every port of a module, shifted in and out on one pin each.

    Every path begins and ends in a register, and no device lacks pins.
    """
    inside = {name: port for name, port in ports.items() if port["direction"] == "in"}
    if clocked:
        inside = {"rst": {"width": 1}} | inside
    outside = {name: port for name, port in ports.items() if port["direction"] == "out"}
    count = {True: sum(port["width"] for port in inside.values()), False: sum(p["width"] for p in outside.values())}
    wires = [".clk(clk)"] if clocked else []
    for side, into in ((inside, "given"), (outside, "got")):
        place = 0
        for name, port in side.items():
            wires.append(f".{name}({into}[{place + port['width'] - 1}:{place}])")
            place += port["width"]
    return (f"module harness(input clk, input i, input load, output o);\n"
            f"  reg [{count[True] - 1}:0] given;\n  wire [{count[False] - 1}:0] got;\n"
            f"  reg [{count[False]}:0] kept;\n"
            f"  {top} dut ({', '.join(wires)});\n"
            f"  always @(posedge clk) given <= {{given, i}};\n"
            f"  always @(posedge clk) kept <= load ? {{got, 1'b0}} : {{kept, 1'b0}};\n"
            f"  assign o = kept[{count[False]}];\nendmodule\n")


def clock(design, unit, recipe, limit=900):
    """Clock in MHz of a design or a unit, or in words why there is none.

    Parameters
    ----------
    design : Design
    unit, recipe : str
    limit : int
        Seconds for nextpnr.

    Raises
    ------
    SynthError
        If Yosys or nextpnr fails for another reason than size or time.
    """
    family = recipe.removesuffix("-logic")
    if device(recipe) is None:
        return "no router"
    tool = find(family)
    if tool is None:
        raise SynthError(f"clocks need nextpnr: pip install yowasp-nextpnr-{family}, or leave out --clock")
    text, manifest = generate(design, unit)
    top = manifest["top"]
    clocked = bool(re.search(r"^  input clk;", partition.split(text)[top], re.MULTILINE))
    text += harness(top, manifest["ports"], clocked)
    script = (f"read_verilog -sv unit.v\nhierarchy -check -top harness\n"
              f"{recipes.FPGA_COMMANDS[recipe].format(top='harness')} -json mapped.json\n")

    def map_(folder):
        (folder / "unit.v").write_text(text)
        yosys.run(script, folder)

    def route(folder):
        mapped = files.entry(files.cache("synth") / ("fpga-" + files.key(yosys.find()[1], script, text)), map_)
        shutil.copyfile(mapped / "mapped.json", folder / "mapped.json")
        result = _route(folder, tool[0], device(recipe)[1], limit)
        (folder / "clock.json").write_text(json.dumps(result))

    key = files.key(*tool, yosys.find()[1], script, text, *device(recipe)[1], str(limit))
    return json.loads((files.entry(files.cache("synth") / ("clock-" + key), route) / "clock.json").read_text())


def _route(folder, command, options, limit):
    """The clock that nextpnr reports."""
    words = [command, "--json", "mapped.json", "--report", "report.json", "--log", "nextpnr.log", "--quiet",
             "--timing-allow-fail", "--freq", str(_TARGET), "--seed", str(SEED), *options]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"> {limit} s"
    report = folder / "report.json"
    if done.returncode or not report.exists():
        said = done.stderr + done.stdout
        if re.search(r"nable to place|no BELs remaining|not enough|too many|Unable to find legal", said):
            return "does not fit"
        why = next((line for line in said.splitlines() if "ERROR" in line), f"exit status {done.returncode}")
        raise SynthError(f"nextpnr failed: {why.strip()} (log: {folder / 'nextpnr.log'})")
    return round(min(entry["achieved"] for entry in json.loads(report.read_text())["fmax"].values()), 1)
