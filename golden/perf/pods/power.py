"""Power of pods, banks and networks from stated constants; and how many pods a budget pays for.

What moves in a pod and cycle is B bytes: r elements of X, c of W, and c partial sums in and c out. A bank costs its
energy for each of them, an element of the array the energy of a multiply-accumulate (with its share of the converters
and accumulators below each column), and a network ``I0`` times its size times B.
"""

import math
from dataclasses import dataclass, fields

from ..constants import ASSUMED, BYTES, NAND2, constant
from .machine import Machine

MODEL = "scale-out systolic arrays, arXiv 2203.11540"
#: Size of a bank in kB -> pJ a byte that is read or written.
BANK_PJ = {64: 1.1, 128: 1.6, 256: 2.7, 512: 4.1}


@dataclass(frozen=True, kw_only=True)
class PodConstants:
    """What the power of a machine is made of."""
    budget_w: float = constant(400.0, "W that the whole may take", MODEL)
    ghz: float = constant(1.0, "GHz", MODEL)
    mac_pj: float = constant(0.4, "pJ a multiply-accumulate, of an array of 32 rows", MODEL)
    column_share: float = constant(0.0, "of that, share that is paid once a column of 32 rows", "none is published")
    bank_pj: float = constant(2.7, "pJ a byte of a bank of 256 kB", MODEL)
    link_uw: float = constant(28.75, "uW a byte of a link, I0", MODEL)
    element_bytes: float = constant(1.0, "bytes of an element of X or W", MODEL)
    sum_bytes: float = constant(2.0, "bytes of a partial sum", MODEL)

    def bytes_a_cycle(self, rows: int, columns: int) -> float:
        """B: bytes that move in a pod and cycle."""
        return (rows + columns) * self.element_bytes + 2 * columns * self.sum_bytes


#: Measured by this project (docs/design/06-area.md): NAND2-equivalents of an element, of a core of :data:`NAND2` a MAC.
ELEMENTS = {"hbfp8": 372.4, "hbfp6": 231.8, "hbfp4": 122.7}
_SCALED = "0.4 pJ in proportion to the core's area, make area: {} NAND2 a MAC; the proportion is " + ASSUMED


def published() -> tuple[PodConstants, dict[str, str]]:
    """The published constants: (PodConstants, name -> source)."""
    return PodConstants(), {each.name: each.metadata["source"] for each in fields(PodConstants)}


def measured(number: str) -> tuple[PodConstants, dict[str, str]]:
    """Those of this project's cores: FP32 partial sums, converters and accumulators below every column."""
    element, core = ELEMENTS[number], NAND2[number]
    made = PodConstants(mac_pj=0.4 * core / NAND2["hbfp8"], column_share=1 - element / core,
                        element_bytes=BYTES[number], sum_bytes=4.0)
    return made, published()[1] | {
        "mac_pj": _SCALED.format(core), "column_share": f"make area: {element} of {core} NAND2 are elements",
        "element_bytes": "mantissa bits / 8; exponents are left out, 1.25 bytes for 32", "sum_bytes": "FP32"}


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
