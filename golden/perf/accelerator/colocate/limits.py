"""What limits a program: the array, the vector unit, the bus, or the DRAM behind it."""

import numpy as np

from hbfp.isa.instructions import BYTES, Opcode
from hbfp.program import Program

from ..times import Times, moved, union


def limits(program: Program, times: Times, bandwidth: int) -> dict[str, float]:
    """The shares of a run's cycles in which the array has a product under way, the vector unit works, the busier of the
    bus's two directions has a beat, and the DRAM moves what it can; instructions are read, too. ``bandwidth``: of the
    DRAM, bytes a cycle.
    """
    opcodes = np.array([int(each.opcode) for each in program.instructions])

    def under_way(*of):
        mine = np.isin(opcodes, of)
        begins, ends = union(times.started[mine], times.completed[mine])
        return int((ends - begins).sum()) / times.cycles
    accelerator = program.accelerator
    of_each = np.array([moved(each, accelerator) for each in program.instructions])
    stored = int(of_each[opcodes == Opcode.STORE].sum())
    read = int(of_each.sum()) - stored + BYTES * len(opcodes)
    return {"array": under_way(Opcode.MULTIPLY, Opcode.DRAIN), "vector": under_way(Opcode.VECTOR),
            "bus": max(read, stored) / (accelerator.beat * times.cycles),
            "DRAM": (read + stored) / (bandwidth * times.cycles)}


def limit(found: dict[str, float]) -> str:
    """The one of :func:`limits` that is busy longest."""
    return max(found, key=found.__getitem__)
