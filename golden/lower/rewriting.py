"""A program with other instructions in place of some of its own, and waits that fit them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.program import Program


@dataclass(frozen=True)
class Rewritten:
    """A program that does what another one does.

    Attributes
    ----------
    program : Program
    numbers : ndarray of int64, (instructions of the other,)
        The number that each instruction of the other one has now; the first, where several stand in its place.
    """
    program: Program
    numbers: NDArray[np.int64]

    def then(self, other: "Rewritten") -> "Rewritten":
        """What came of this program when it was rewritten, too."""
        return Rewritten(other.program, other.numbers[self.numbers])


def rewritten(program: Program, groups: Mapping[int, Sequence[Instruction]]) -> Rewritten:
    """A program with several instructions in place of each of some.

    They do together what the one did: all of its unit, of which the first has its waits; a YIELD may stand before them.
    Waits count from the last YIELD on, and what is complete there is not waited for. A layer has the YIELDs within it;
    one between two layers is of neither.

    Parameters
    ----------
    program : Program
    groups : dict
        Number of an instruction -> what stands in its place.
    """
    made: list[Instruction] = []
    numbers, behind = np.zeros(len(program.instructions), np.int64), np.zeros(len(program.instructions), np.int64)
    # Of each unit: its instructions when so many of the old ones are complete, and at the last YIELD.
    counts: dict[Unit, list[int]] = {unit: [0] for unit in Unit}
    begun = dict.fromkeys(Unit, 0)
    for number, each in enumerate(program.instructions):
        group = list(groups.get(number, [each]))
        if group[0].opcode == Opcode.YIELD and each.opcode != Opcode.YIELD:
            made.append(group.pop(0))
            begun = {unit: count[-1] for unit, count in counts.items()}
        numbers[number] = len(made)
        waits = tuple(Wait(wait.unit, counts[wait.unit][wait.count] - begun[wait.unit]) for wait in each.waits
                      if counts[wait.unit][wait.count] > begun[wait.unit])
        made += [group[0] if waits == group[0].waits else replace(group[0], waits=waits), *group[1:]]
        behind[number] = len(made)
        if each.opcode == Opcode.YIELD:
            counts, begun = {unit: [0] for unit in Unit}, dict.fromkeys(Unit, 0)
        elif each.unit is not None:
            counts[each.unit].append(counts[each.unit][-1] + len(group))
    layers = tuple(replace(each, first=int(numbers[each.first]), stop=int(behind[each.stop - 1]))
                   if each.stop > each.first else
                   replace(each, first=int(numbers[each.first]), stop=int(numbers[each.first]))
                   for each in program.layers)
    return Rewritten(replace(program, instructions=tuple(made), layers=layers), numbers)
