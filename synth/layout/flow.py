"""From a mapped netlist to a routed block: the steps, each with the file that it makes."""

from collections.abc import Callable
from pathlib import Path

from ..tools import yosys
from . import tools

#: What the block is called in all files.
BLOCK = "block"
#: Layers of metal that wires may use.
LAYERS = 6
_BLIF = f"""\
read_verilog netlist.v
read_liberty -lib cells.lib
hierarchy -top {{top}}
flatten
splitnets -ports
opt_clean -purge
rename {{top}} {BLOCK}
write_blif -gates -impltf {BLOCK}.blif
"""
_ROUTE = f"""\
verbose 1
read_lef {tools.LEF}
layers {LAYERS}
via stack 2
vdd vdd
gnd gnd
{{obstructions}}
read_def {BLOCK}.def
qrouter::standard_route {BLOCK}_route.def false
quit
"""


def lay_out(netlist: str, top: str, cells: Path, folder: Path, tell: Callable[[str], None] = lambda step: None) -> Path:
    """Place and route a netlist in a folder.

    Parameters
    ----------
    netlist : str
        Verilog of cells, without models of these.
    top : str
        Its top module.
    cells : Path
        The Liberty file.
    folder : Path
        An empty one.
    tell : callable
        Told each step.

    Returns
    -------
    Path
        The routed block's DEF file.

    Raises
    ------
    SynthError
        If a program is missing or fails, or nets stay without a route.
    """
    tools.check()
    tell("flatten")
    (folder / "netlist.v").write_text(netlist)
    (folder / "cells.lib").write_bytes(cells.read_bytes())
    yosys.run(_BLIF.format(top=top), folder)
    (folder / f"{BLOCK}.par").write_bytes((tools.TECHNOLOGY / "osu018.par").read_bytes())
    (folder / "start.cfg").write_text(f"read_lef {tools.LEF}\n")
    tell("place")
    tools.run(["qrouter", "-i", f"{BLOCK}.info", "-c", "start.cfg"], folder, f"{BLOCK}.info")
    tools.run([tools.SCRIPTS / "blif2cel.tcl", "--blif", f"{BLOCK}.blif", "--lef", tools.LEF, "--cel", f"{BLOCK}.cel"],
              folder, f"{BLOCK}.cel")
    tools.run(["graywolf", "-n", BLOCK], folder, f"{BLOCK}.pin")
    tools.run([tools.SCRIPTS / "place2def.tcl", BLOCK, "FILL"], folder, f"{BLOCK}.def")
    tools.run([tools.SCRIPTS / "addspacers.tcl", "-stripe", "2.0", "50.0", "PG", BLOCK, tools.LEF, "FILL"], folder,
              f"{BLOCK}_filled.def")
    (folder / f"{BLOCK}_filled.def").replace(folder / f"{BLOCK}.def")
    if (folder / f"{BLOCK}.obsx").exists():    # with the stripes of power in them
        (folder / f"{BLOCK}.obsx").replace(folder / f"{BLOCK}.obs")
    tools.run([tools.SCRIPTS / "arrangepins.tcl", BLOCK], folder, f"{BLOCK}_mod.def")
    (folder / f"{BLOCK}_mod.def").replace(folder / f"{BLOCK}.def")
    tell("route")
    (folder / "route.cfg").write_text(_ROUTE.format(obstructions=(folder / f"{BLOCK}.obs").read_text()))
    tools.run(["qrouter", "-nog", "-s", "route.cfg"], folder, f"{BLOCK}_route.def")
    return folder / f"{BLOCK}_route.def"
