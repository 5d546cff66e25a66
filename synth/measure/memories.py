"""What memories take: no recipe maps them, so they are priced as macros of a memory compiler (:mod:`hbfp.macros`).

A price for every bit alike, which a user may give instead, hides that small macros take more a bit than large ones, and
that those of two ports take twice as much as those of one. What :mod:`hbfp.rtl.lib.memory` needs has two ports, a write
and a read a cycle. Every report says how its memories were priced.
"""

from hbfp import macros
from hbfp.manifest import Module

#: What a user may give as the price of a bit.
BIT_RANGE = (0, 100)


def area(module: Module) -> float:
    """NAND2-equivalents of a memory, as macros or, if that is less, as flip-flops."""
    return macros.memory(*module.shape).area if module.shape else 0.0


def label(bit: float | None) -> str:
    """How memories are priced: None is by words, width and ports."""
    return "as macros" if bit is None else f"{bit:g} a bit"
