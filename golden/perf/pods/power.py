"""Power of pods, banks and networks from stated constants; and how many pods a budget pays for.

What moves in a pod and cycle is B bytes: r elements of X, c of W, and c partial sums in and c out. A bank costs its
energy for each of them, an element of the array the energy of a multiply-accumulate (with its share of the converters
and accumulators below each column), and a network ``link_uw`` times its size times B.
"""

import math
from dataclasses import dataclass

from ..prices import ASSUMED, BOOK, BYTES, ELEMENTS, NAND2, price, sources
from .machine import Machine


@dataclass(frozen=True, kw_only=True)
class PodConstants:
    """What the power of a machine is computed from; names end in the unit, ``bank_pj`` is that of a byte."""
    budget_w: float = price("budget_w")
    ghz: float = price("ghz")
    mac_pj: float = price("mac_pj")
    column_share: float = price("column_share")
    bank_pj: float = price("sram256_pj")
    link_uw: float = price("link_uw")
    element_bytes: float = price("hbfp8_bytes")
    sum_bytes: float = price("sum_bytes")

    def bytes_a_cycle(self, rows: int, columns: int) -> float:
        """B: bytes that move in a pod and cycle."""
        return (rows + columns) * self.element_bytes + 2 * columns * self.sum_bytes


_SCALED = "{:g} pJ in proportion to the core's area, make area: {:.1f} NAND2 a MAC; the proportion is " + ASSUMED


def published() -> tuple[PodConstants, dict[str, str]]:
    """The published constants: (PodConstants, name -> source)."""
    return PodConstants(), sources(PodConstants)


def measured(number: str) -> tuple[PodConstants, dict[str, str]]:
    """Those of this project's cores: FP32 partial sums, converters and accumulators below every column."""
    element, core, base, sums = ELEMENTS[number], NAND2[number], BOOK["mac_pj"].value, BOOK["fp32_sum_bytes"]
    made = PodConstants(mac_pj=base * core / NAND2["hbfp8"], column_share=1 - element / core,
                        element_bytes=BYTES[number], sum_bytes=sums.value)
    return made, published()[1] | {
        "mac_pj": _SCALED.format(base, core),
        "column_share": f"make area: {element:.1f} of {core:.1f} NAND2 are elements",
        "element_bytes": BOOK[f"{number}_bytes"].source, "sum_bytes": sums.source}


#: Name of a set -> its constants and their sources.
SETS = {"published": published} | {f"measured-{name}": (lambda name=name: measured(name)) for name in ELEMENTS}


@dataclass(frozen=True)
class Power:
    """W of each part."""
    banks: float
    arrays: float
    network: float

    @property
    def total(self) -> float:
        """W of all."""
        return self.banks + self.arrays + self.network


def power(constants: PodConstants, pods: int, rows: int, columns: int, interconnect: str, copies: int) -> Power:
    """W of a machine that computes in every cycle; ``copies`` of a butterfly, 0 of others."""
    moved = constants.bytes_a_cycle(rows, columns)
    share = constants.column_share
    mac = constants.mac_pj * (1 - share + share * 32 / rows)
    wide = pods * max(copies, 1)
    size = {"crossbar": pods * pods, "benes": 4 * pods * math.log2(pods)}.get(interconnect,
                                                                              wide * math.log2(max(wide, 2)))
    return Power(pods * moved * constants.bank_pj * constants.ghz * 1e-3,
                 pods * rows * columns * mac * constants.ghz * 1e-3, constants.link_uw * 1e-6 * size * moved)


def of(constants: PodConstants, machine: Machine) -> Power:
    """:func:`power` of a machine."""
    return power(constants, machine.pods, machine.rows, machine.columns, machine.interconnect.name,
                 machine.interconnect.copies)


def affordable(constants: PodConstants, size: int, interconnect: str = "butterfly-2", copies: int = 2) -> int:
    """The most pods of ``size`` x ``size`` that the budget pays for; 0 if it does not pay for one."""
    low, high = 0, 1
    while power(constants, high, size, size, interconnect, copies).total <= constants.budget_w:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = power(constants, middle, size, size, interconnect, copies).total <= constants.budget_w
        low, high = (middle, high) if enough else (low, middle)
    return low
