"""FPGAs that cores are held against: what there is of each, and what a core takes of it."""

from dataclasses import dataclass

from hbfp.design import Design

from . import whole


@dataclass(frozen=True)
class Use:
    """Cells of a device, or those that a core takes of it: LUTs, with those of carries and distributed RAM."""
    luts: float = 0
    flipflops: float = 0
    rams: float = 0
    dsps: float = 0


#: Family -> device, and what there is of it.
DEVICES = {"ecp5": ("LFE5U-85F", Use(83640, 83640, 208, 156))}


def count(family: str, design: Design, blocks: int) -> tuple[Use, int]:
    """What a whole core takes, and its multiplications that are no DSP blocks.

    Parameters
    ----------
    family : str
        Of :data:`DEVICES`.
    design : Design
    blocks : int
        DSP blocks that it may take.
    """
    name, _ = DEVICES[family]
    mapped = whole.map_cells(design, blocks)
    found = {kind: used for kind, (used, _) in whole.pack_cells(mapped, name).items()}
    # A slice that writes distributed RAM has no LUTs beside.
    luts = found.get("TRELLIS_COMB", 0) + 2 * found.get("TRELLIS_RAMW", 0)
    return Use(luts, found.get("TRELLIS_FF", 0), found.get("DP16KD", 0), found.get("MULT18X18D", 0)), \
        mapped.multipliers["luts"]
