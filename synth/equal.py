"""Formal equality of a unit's Verilog and its mapped netlist."""

import tempfile
from pathlib import Path

from . import netlist, yosys
from .area import generate, synthesise

#: Flip-flops have the same names on both sides, so that each next state and output is proved by itself.
_SCRIPT = """\
read_verilog -sv unit.v
hierarchy -check -top {top}
synth -flatten -noabc -top {top} -run begin:fine
async2sync
opt_clean -purge
rename {top} gold
design -stash gold
read_verilog -sv mapped.v
hierarchy -check -top {top}
proc
flatten
async2sync
opt_clean
rename {top} gate
design -stash gate
design -copy-from gold -as gold gold
design -copy-from gate -as gate gate
equiv_make gold gate both
hierarchy -top both
clean
equiv_simple -undef
equiv_induct -undef -seq 3
equiv_status -assert
"""


def check(unit, mapped):
    """Prove that Verilog text ``mapped`` equals a unit, for all inputs and states.

    Raises
    ------
    SynthError
        If it does not, or the solver cannot tell.
    """
    Path("build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir="build", prefix="equal-") as folder:
        place = Path(folder)
        (place / "unit.v").write_text(unit.verilog)
        (place / "mapped.v").write_text(mapped)
        yosys.run(_SCRIPT.format(top=unit.top), place)


def netlists(design, unit):
    """The units of one part of a design, each with its generic netlist."""
    return [(part, (synthesise(part, "generic") / "mapped.v").read_text())
            for part in netlist.units(*generate(design, unit))]
