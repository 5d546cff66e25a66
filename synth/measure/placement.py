"""Clocks of FPGA designs: placed and routed by nextpnr, between two chains of registers."""

import json
import re
import shutil
from collections.abc import Mapping

from hbfp import entries, files
from hbfp.design import Design
from hbfp.manifest import Port

from ..tools import nextpnr, recipes, yosys
from ..tools.errors import SynthError
from . import partition
from .area import generate


def harness(top: str, ports: Mapping[str, Port], clocked: bool) -> str:
    """Verilog of ``harness``: registers on every port of a module, shifted in and out on one pin each.

    Every path begins and ends in a register, and no device lacks pins.
    """
    inside = {name: port for name, port in ports.items() if port.direction == "in"}
    if clocked:
        inside = {"rst": Port("in", 1)} | inside
    outside = {name: port for name, port in ports.items() if port.direction == "out"}
    count = {True: sum(port.width for port in inside.values()), False: sum(p.width for p in outside.values())}
    wires = [".clk(clk)"] if clocked else []
    for side, into in ((inside, "given"), (outside, "got")):
        place = 0
        for name, port in side.items():
            wires.append(f".{name}({into}[{place + port.width - 1}:{place}])")
            place += port.width
    return (f"module harness(input clk, input i, input load, output o);\n"
            f"  reg [{count[True] - 1}:0] given;\n  wire [{count[False] - 1}:0] got;\n"
            f"  reg [{count[False]}:0] kept;\n"
            f"  {top} dut ({', '.join(wires)});\n"
            f"  always @(posedge clk) given <= {{given, i}};\n"
            f"  always @(posedge clk) kept <= load ? {{got, 1'b0}} : {{kept, 1'b0}};\n"
            f"  assign o = kept[{count[False]}];\nendmodule\n")


def clock(design: Design, unit: str, recipe: str, limit: int = 900) -> float | str:
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
    if (device := nextpnr.device(recipe)) is None:
        return "no router"
    tool = nextpnr.find(family)
    if tool is None:
        raise SynthError("clocks need nextpnr: pip install 'hbfp[fpga]', or leave out --clock")
    text, manifest = generate(design, unit)
    top = manifest.top
    clocked = bool(re.search(r"^  input clk;", partition.split(text)[top], re.MULTILINE))
    text += harness(top, manifest.ports, clocked)
    script = (f"read_verilog -sv unit.v\nhierarchy -check -top harness\n"
              f"{recipes.FPGA_COMMANDS[recipe].format(top='harness')} -json mapped.json\n")

    def synthesise(folder):
        (folder / "unit.v").write_text(text)
        yosys.run(script, folder)

    def route(folder):
        mapped = entries.entry(files.cache("synth") / ("fpga-" + files.key(yosys.find()[1], script, text)), synthesise)
        shutil.copyfile(mapped / "mapped.json", folder / "mapped.json")
        result = nextpnr.clock(folder, tool[0], device[1], limit)
        (folder / "clock.json").write_text(json.dumps(result))

    key = files.key(*tool, yosys.find()[1], script, text, *device[1], str(limit))
    return json.loads((entries.entry(files.cache("synth") / ("clock-" + key), route) / "clock.json").read_text())
