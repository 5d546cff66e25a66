"""FPGAs that cores are held against: what there is of each, and what a core takes of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from hbfp.design import Design

from ..tools import xilinx
from . import whole


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
    mapped = whole.map_cells(whole.behind_pins(design), blocks)
    found = {kind: used for kind, (used, _) in whole.pack_cells(mapped, DEVICES[family][0]).items()}
    # A slice that writes distributed RAM has no LUTs beside.
    luts = found.get("TRELLIS_COMB", 0) + 2 * found.get("TRELLIS_RAMW", 0)
    return Use(luts, found.get("TRELLIS_FF", 0), found.get("DP16KD", 0), found.get("MULT18X18D", 0)), \
        mapped.multipliers["luts"]


def _xilinx(family, design, blocks):
    """The same by Yosys alone."""
    way = whole.Way(*(script.replace("{family}", family) for script in (xilinx.COARSE, xilinx.MAPPED)),
                    xilinx.DSP_BITS[family])
    mapped = whole.map_cells(whole.behind_pins(design), blocks, way=way)
    return xilinx_use(mapped.cells), mapped.multipliers["luts"]


def xilinx_use(cells: Mapping[str, int]) -> Use:
    """What cells take of a Xilinx device, by type."""
    return Use(**{column: sum(cells.get(kind, 0) * each for kind, each in kinds.items())
                  for column, kinds in xilinx.CELLS.items()})
