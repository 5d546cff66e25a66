"""What limits a program: the array, the vector unit, or the bus to DRAM."""

import numpy as np

from hbfp.isa.instructions import BYTES, Opcode
from hbfp.program import Program

from ..times import Times, moved, union


def limits(program: Program, times: Times, bandwidth: int) -> dict[str, float]:
    """The shares of a run's cycles in which the array has a product under way, the vector unit works, and the bus moves
    what it can; instructions count as bytes, too. ``bandwidth``: of the DRAM, bytes a cycle.
    """
    opcodes = np.array([int(each.opcode) for each in program.instructions])

    def under_way(*of):
        mine = np.isin(opcodes, of)
        begins, ends = union(times.started[mine], times.completed[mine])
        return int((ends - begins).sum()) / times.cycles
    bytes_moved = BYTES * len(opcodes) + sum(moved(each, program.accelerator) for each in program.instructions)
    return {"array": under_way(Opcode.MULTIPLY, Opcode.DRAIN), "vector": under_way(Opcode.VECTOR),
            "bus": bytes_moved / (bandwidth * times.cycles)}


def limit(found: dict[str, float]) -> str:
    """The one of :func:`limits` that is busy longest."""
    return max(found, key=found.__getitem__)
