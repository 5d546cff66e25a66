"""Formal equality of a unit's Verilog and its mapped netlist: next states and outputs, for all states and inputs.

Registers and the ports of the units inside are cut on both sides, which have the same names for them; what is left
has no state. ABC merges what it proves equal (SAT sweeping), which leaves little or nothing for the last proof.
"""

from collections.abc import Iterator

from hbfp import files
from hbfp.design import Design
from synth.measure import partition
from synth.measure.area import generate, synthesise
from synth.measure.mapped import assemble, models
from synth.tools import yosys
from synth.tools.library import Library

#: Seconds for a proof.
LIMIT = 600

_CUT = """\
async2sync
dffunmap
opt_clean -purge
splitnets
opt_clean
expose -evert -evert-dff -dff {top}
opt_clean
techmap
opt
rename {top} {side}
design -stash {side}
"""
_SCRIPT = """\
read_verilog -sv unit.v
hierarchy -check -top {top}
synth -flatten -noabc -top {top} -run begin:fine
memory_map
""" + _CUT.replace("{side}", "gold") + """\
read_verilog -sv mapped.v
read_verilog -lib stubs.v
hierarchy -top {top}
proc
techmap -autoproc -map cells.v
rename -hide w:_*_.* w:*_reg?*
flatten
""" + _CUT.replace("{side}", "gate") + """\
design -copy-from gold -as gold gold
design -copy-from gate -as gate gate
miter -equiv -flatten gold gate both
hierarchy -top both
techmap
opt
abc -script +strash;&get,-n;&fraig,-x;&put
opt_clean
sat -verify -prove trigger 0 both
"""


def prove_equal(unit: partition.Unit, mapped: str) -> None:
    """Prove that Verilog text ``mapped`` (with models of its cells) equals a unit.

    Raises
    ------
    SynthError
        If it does not, or the solver cannot tell.
    """
    with files.scratch() as place:
        (place / "unit.v").write_text(unit.verilog)
        modules = partition.split(mapped)
        (place / "mapped.v").write_text(modules.pop(unit.top) + "\n")
        (place / "cells.v").write_text("\n".join(modules.values()) + "\n")
        bodies = partition.split(unit.verilog)
        (place / "stubs.v").write_text("\n".join(partition.stub(bodies[name]) for name in unit.uses) + "\n")
        yosys.run(_SCRIPT.format(top=unit.top), place, LIMIT)


def mapped_units(design: Design, unit: str = "core", recipe: str = "generic",
                 library: Library | None = None) -> Iterator[tuple[partition.Unit, str]]:
    """The units of one part of a design, each with its netlist and the models of the cells in it."""
    cells = models(library) if library else {}
    for part in partition.units(*generate(design, unit)):
        if part.kind != "ram":
            text = (synthesise(part, recipe, library) / "mapped.v").read_text()
            yield part, assemble([part], {part.top: text}, cells)
