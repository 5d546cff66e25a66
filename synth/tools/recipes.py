"""Yosys scripts: one design file in, its mapped netlist and one ``stat`` file out.

``area`` is the recipe of all areas that name no other; ``stock`` is what the manuals suggest, printed beside it.
``adders`` is ``area`` with the library's own full adder, in each unit in which that is smaller.
"""

#: ABC script of ``area``: structural choices before each of two area-oriented mappings.
AREA_ABC = "+strash;&get,-n;&fraig,-x;&put;scorr;dc2;dc2;strash;dch,-f;amap,-m;strash;dch,-f;amap,-m;topo;stime"
#: ABC script of ``speed``: delay-oriented mapping, then buffers and sizes.
SPEED_ABC = ("+strash;ifraig;scorr;dc2;strash;dch,-f;map,-B,0.9;topo;buffer,-c;upsize,-c;dnsize,-c;topo;stime")

#: Recipes with a Liberty file, and those without; those of FPGAs have no area: ``python -m synth fpga``.
CELL_RECIPES = ("area", "adders", "stock", "speed")
GENERIC_RECIPES = ("generic",)
#: FPGA families, with DSP blocks and, as ``-logic``, without.
FAMILIES = ("ecp5", "ice40", "xc7")
FPGA_RECIPES = tuple(family + kind for family in FAMILIES for kind in ("", "-logic"))

_READ = "read_verilog -sv {file}\nhierarchy -check -top {top}\n"
_MAPPED = ("opt_clean -purge\ntee -q -o stat.json stat -json -liberty {liberty}\n"
           "write_verilog -noattr mapped.v\nwrite_blif mapped.blif\n")

#: File of the map of full adders (:func:`synth.tools.adders.techmap`).
MAP = "adders.v"

_AREA = ("synth -flatten -noabc -booth -top {top}\nopt_clean -purge\ndfflibmap -liberty {liberty}\n"
         f"abc -liberty {{liberty}} -script {AREA_ABC}\n" + _MAPPED)
_SCRIPTS = {
    "area": _AREA,
    "adders": f"read_liberty -lib -ignore_miss_func {{liberty}}\ntechmap -map {MAP}\n" + _AREA,
    "speed": "synth -flatten -noabc -booth -top {top}\nopt_clean -purge\ndfflibmap -liberty {liberty}\n"
             f"abc -liberty {{liberty}} -script {SPEED_ABC}\n" + _MAPPED,
    "stock": "synth -flatten -top {top}\ndfflibmap -liberty {liberty}\nabc -liberty {liberty}\n" + _MAPPED,
    "generic": "synth -flatten -booth -top {top}\nabc -g cmos\nopt_clean -purge\n"
               "tee -q -o stat.json stat -json -tech cmos\nwrite_verilog -noattr mapped.v\n",
}
#: Commands of the FPGA recipes; one top, nothing at its pins.
FPGA_COMMANDS = {
    "ecp5": "synth_ecp5 -top {top}", "ecp5-logic": "synth_ecp5 -nodsp -top {top}",
    "ice40": "synth_ice40 -dsp -top {top}", "ice40-logic": "synth_ice40 -top {top}",
    "xc7": "synth_xilinx -flatten -noiopad -noclkbuf -top {top}",
    "xc7-logic": "synth_xilinx -flatten -noiopad -noclkbuf -nodsp -top {top}",
}
_SCRIPTS |= {name: command + "\nopt_clean -purge\ntee -q -o stat.json stat -json\n"
             for name, command in FPGA_COMMANDS.items()}


def tried(recipe: str) -> tuple[str, ...]:
    """The scripts of a recipe, of which each unit takes that which makes it smallest, the first where several do."""
    return ("area", "adders") if recipe == "adders" else (recipe,)


def script(recipe: str, file: str, top: str, liberty: str | None = None) -> str:
    """The Yosys script of that name, with relative paths."""
    return _READ.format(file=file, top=top) + _SCRIPTS[recipe].format(top=top, liberty=liberty)
