"""Multiplications of a flattened netlist: which of them become DSP blocks, and which do not."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..tools import ecp5


@dataclass(frozen=True)
class Multiplier:
    """A multiplication of the netlist: its cell, and the bits of its operands."""
    cell: str
    bits: tuple[int, int]

    def blocks(self, sides: tuple[int, int] = ecp5.DSP_BITS) -> int:
        """DSP blocks that it takes, whose operands have so many bits."""
        return min(-(-a // sides[0]) * -(-b // sides[1]) for a, b in (self.bits, self.bits[::-1]))


def multipliers(text: str) -> list[Multiplier]:
    """The :class:`Multiplier` of each ``$mul`` in RTLIL, as Yosys' ``dump`` writes it."""
    found = []
    for cell, body in re.findall(r"^ *cell \$mul (\S+)\n(.*?)^ *end$", text, re.MULTILINE | re.DOTALL):
        widths = dict(re.findall(r"parameter (?:signed )?\\([AB])_WIDTH (\d+)", body))
        found.append(Multiplier(cell, (int(widths["A"]), int(widths["B"]))))
    return found


def soft(found: Iterable[Multiplier], budget: int, sides: tuple[int, int] = ecp5.DSP_BITS) -> list[Multiplier]:
    """The multipliers that take no DSP blocks where there are ``budget``: the narrowest, the last ones of equals."""
    result, left = [], budget
    for each in sorted(found, key=lambda one: (-one.bits[0] * one.bits[1], _natural(one.cell))):
        left -= each.blocks(sides)
        if left < 0:
            result.append(each)
            left += each.blocks(sides)
    return result


def _natural(name):
    """A key that sorts numbers in names by value."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
