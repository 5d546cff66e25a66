"""FPGAs that cores are held against: what there is of each, and what a core takes of it."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from hbfp import entries, files
from hbfp.design import Design

from ..tools import xilinx, yosys
from . import serial, whole
from .area import generate


@dataclass(frozen=True)
class Use:
    """Cells of a device, or those that a core takes of it: LUTs, with those of carries and distributed RAM."""
    luts: float = 0
    flipflops: float = 0
    rams: float = 0
    dsps: float = 0


#: Family -> device, and what there is of it.
DEVICES = {"ecp5": ("LFE5U-85F", Use(83640, 83640, 208, 156)),
           "xc7": ("XC7K325T", Use(203800, 407600, 445, 840)),
           "xcup": ("XCKU5P", Use(216960, 433920, 480, 1824))}


def count(family: str, design: Design, blocks: int) -> tuple[Use, int]:
    """What a whole core behind six pins takes, and its multiplications that are no DSP blocks.

    Parameters
    ----------
    family : str
        Of :data:`DEVICES`.
    design : Design
    blocks : int
        DSP blocks that it may take.

    Raises
    ------
    SynthError
        If a tool fails.
    """
    if family != "ecp5":
        return _xilinx(family, design, blocks)
    mapped = whole.map_cells(design, blocks)
    found = {kind: used for kind, (used, _) in whole.pack_cells(mapped, DEVICES[family][0]).items()}
    # A slice that writes distributed RAM has no LUTs beside.
    luts = found.get("TRELLIS_COMB", 0) + 2 * found.get("TRELLIS_RAMW", 0)
    return Use(luts, found.get("TRELLIS_FF", 0), found.get("DP16KD", 0), found.get("MULT18X18D", 0)), \
        mapped.multipliers["luts"]


def _xilinx(family, design, blocks):
    """The same by Yosys alone."""
    text, manifest = generate(design)
    text += serial.wrapper(manifest.top, manifest.ports, manifest.streams)
    coarse, mapped = (script.format(family=family, top=serial.TOP) for script in (xilinx.COARSE, xilinx.MAPPED))

    def flatten(folder):
        (folder / "unit.v").write_text(text)
        yosys.run(coarse, folder)
    key = files.key(yosys.find()[1], coarse, text)
    flat = entries.entry(files.cache("synth") / f"coarse-{key}", flatten)
    chosen = whole.soft(whole.multipliers((flat / "muls.il").read_text()), blocks, xilinx.DSP_BITS[family])

    def synthesise(folder):
        shutil.copyfile(flat / "coarse.il", folder / "coarse.il")
        (folder / "soft.txt").write_text("".join(f"{serial.TOP}/{each.cell}\n" for each in chosen))
        yosys.run(mapped, folder)
        (folder / "coarse.il").unlink()
    key = files.key(key, mapped, *(each.cell for each in chosen))
    netlist = entries.entry(files.cache("synth") / f"whole-{key}", synthesise)
    return xilinx_use(json.loads((netlist / "stat.json").read_text())["design"]["num_cells_by_type"]), len(chosen)


def xilinx_use(cells: Mapping[str, int]) -> Use:
    """What cells take of a Xilinx device, by type."""
    return Use(**{column: sum(cells.get(kind, 0) * each for kind, each in kinds.items())
                  for column, kinds in xilinx.CELLS.items()})
