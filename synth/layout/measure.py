"""What laying out adds to a block: area between cells, capacitance of wires, and time."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from hbfp.design import Design

from ..measure import partition
from ..measure.area import generate, synthesise
from ..measure.mapped import assemble
from ..power import liberty
from ..tools import opensta
from ..tools.errors import SynthError
from ..tools.library import Library
from . import flow, netlist, tools
from .drawn import Block, Technology

#: Cells that hold rows together and do nothing.
FILL = "FILL"
_PERIOD = 10000    # ns; longer than any path
_SCRIPT = f"""\
read_liberty cells.lib
read_verilog block.v
link_design {flow.BLOCK}
create_clock -name clk -period {_PERIOD} [get_ports clk]
set_input_delay 0 -clock clk [all_inputs]
set_output_delay 0 -clock clk [all_outputs]
{{wires}}
report_checks -path_delay max -format full -fields {{{{net}}}}
exit
"""


@dataclass(frozen=True)
class Layout:
    """A block laid out.

    Attributes
    ----------
    top : str
        Its module.
    block : Block
    technology : Technology
    added : dict of str to float
        pF that the wires of each net add.
    pins : float
        pF of all pins that nets drive.
    period, period_with_wires : float or None
        ns: the longest path without wires and with them; None without OpenSTA.
    """
    top: str
    block: Block
    technology: Technology
    added: dict[str, float]
    pins: float
    period: float | None
    period_with_wires: float | None

    def as_dict(self) -> dict[str, Any]:
        """Figures by name: um, um2, pF, fF, ns."""
        (left, bottom), (right, top) = self.block.corners
        kinds = [kind for kind, _, _ in self.block.cells.values() if kind != FILL]
        cells = sum(width * height for width, height in (self.technology.cells[kind] for kind in kinds))
        sinks = sum(len(net.pins) - 1 for net in self.block.nets.values())
        length = sum(wire.length for net in self.block.nets.values() for wire in net.wires)
        wires, area = sum(self.added.values()), (right - left) * (top - bottom)
        return {"top": self.top, "cells": len(kinds), "cells_um2": cells, "block_um2": area,
                "area_added": area / cells - 1, "width_um": right - left, "height_um": top - bottom,
                "nets": len(self.block.nets), "sinks": sinks, "wire_um": length, "wire_um_a_sink": length / sinks,
                "wires_pf": wires, "wire_ff_a_sink": 1000 * wires / sinks, "pins_pf": self.pins,
                "capacitance_added": wires / self.pins, "period_ns": self.period,
                "period_with_wires_ns": self.period_with_wires}


def lay_out(design: Design, unit: str, recipe: str, library: Library, jobs: int = 1,
            tell: Callable[[str], None] = lambda step: None) -> Layout:
    """Map a part of a design, place and route it, and read what came of it.

    Raises
    ------
    SynthError
        If the part has memories, a program is missing or fails, or the library is not OSU018.
    """
    tools.check()
    if library.name != "osu018_stdcells":
        raise SynthError(f"Laying out needs the geometry of OSU018, not of {library.name}")
    text, manifest = generate(design, unit)
    parts = partition.units(text, manifest)
    if any(part.kind == "ram" for part in parts):
        raise SynthError(f"Laying out takes parts without memories, such as group, not {unit}")
    tell("map")
    folders = Parallel(n_jobs=jobs)(delayed(synthesise)(part, recipe, library) for part in parts)
    mapped = {part.top: (folder / "mapped.v").read_text() for part, folder in zip(parts, folders, strict=True)}
    with tempfile.TemporaryDirectory() as name:
        routed = flow.lay_out(assemble(parts, mapped, {}), manifest.top, library.path, Path(name), tell)
        return measured(manifest.top, routed, library)


def measured(top: str, routed: Path, library: Library) -> Layout:
    """What a DEF file says of a block that is laid out with a library's cells."""
    block, technology = Block.read(routed), Technology.read(tools.LEF)
    cells = liberty.read(library.path).cells
    added = netlist.capacitances(block, technology)
    drives = {kind: next(iter(cell.outputs)) for kind, cell in cells.items() if len(cell.outputs) == 1}
    inputs = [cells[block.cells[instance][0]].inputs.get(pin, 0.0) for net in block.nets.values()
              for instance, pin in net.pins if instance != netlist.PORT]
    return Layout(top, block, technology, added, sum(inputs) / 1000,
                  *_periods(block, added, drives, library) if opensta.find() else (None, None))


def _periods(block, added, drives, library):
    """The longest path without wires and with them, ns."""
    leaves = frozenset(name for name, net in block.nets.items() if netlist.driver(block, net, drives) and any(
        instance == netlist.PORT for instance, _ in net.pins))
    given = {"cells.lib": library.path, "block.v": netlist.verilog(flow.BLOCK, block, leaves),
             "block.spef": netlist.spef(flow.BLOCK, block, added, drives)}
    return [_PERIOD - opensta.longest_path(flow.BLOCK, given, _SCRIPT.format(wires=wires))[0]
            for wires in ("", "read_spef block.spef")]
