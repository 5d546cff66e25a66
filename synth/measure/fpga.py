"""What a design takes of an FPGA: LUTs, carries, DSP blocks, flip-flops, block RAMs."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from hbfp.design import Design

from . import partition
from .area import BESIDE, figures, generate, owners, synthesise

FPGA_UNITS = ("element", "group", "core")
#: Column -> regular expression of the cells in it, by family.
CELLS = {
    "ecp5": {"luts": "LUT4", "carries": "CCU2C", "dsps": "MULT18X18D|ALU54B", "flipflops": "TRELLIS_FF",
             "rams": "DP16KD|PDPW16KD"},
    "ice40": {"luts": "SB_LUT4", "carries": "SB_CARRY", "dsps": "SB_MAC16", "flipflops": "SB_DFF.*",
              "rams": "SB_RAM40_4K.*"},
    "xc7": {"luts": "LUT[1-6]", "carries": "CARRY4", "dsps": "DSP48E1", "flipflops": "FD[A-Z]+",
            "rams": "RAMB18E1|RAMB36E1"},
}


@dataclass
class Counts:
    """Cells of an FPGA by column of the table; a LUT has four inputs, on xc7 up to six."""
    luts: int = 0
    carries: int = 0
    dsps: int = 0
    flipflops: int = 0
    rams: int = 0

    def add(self, other: "Counts", times: int = 1) -> None:
        """Add ``times`` as much of another."""
        for entry in fields(self):
            setattr(self, entry.name, getattr(self, entry.name) + times * getattr(other, entry.name))


def counts(types: Mapping[str, float], family: str) -> Counts:
    """Counts of cells by type, as ``stat`` gives them."""
    return Counts(**{column: sum(int(count) for name, count in types.items() if re.fullmatch(pattern, name))
                     for column, pattern in CELLS[family].items()})


def part(design: Design, unit: str) -> tuple[Design, str]:
    """Design and unit of the generator for one of :data:`FPGA_UNITS`: an element is a group of one."""
    return (replace(design, group=(1, 1), wide=0, sparse=(1, 1)), "group") if unit == "element" else (design, unit)


def parts(design: Design, unit: str) -> Iterator[tuple[partition.Unit, int]]:
    """(unit of the netlist, how often it is there) for all but the side unit; memories are counted here."""
    found = partition.units(*generate(*part(design, unit)))
    owner = owners(found)
    for each in found:
        times = sum(count for name, count in owner[each.top].items() if name not in BESIDE)
        if times:
            yield each, times


def count(design: Design, unit: str, recipe: str) -> Counts:
    """Counts of one of :data:`FPGA_UNITS`: every distinct module by itself, times its number."""
    total = Counts()
    for each, times in parts(design, unit):
        types = figures(synthesise(each, recipe) / "stat.json", each.top, None).types
        total.add(counts(types, recipe.removesuffix("-logic")), times)
    return total
