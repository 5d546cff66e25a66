"""A program of two layers, with times as a run might have had them."""

import numpy as np

from golden.perf.accelerator.times import Times
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.program import Layer, Product, Program
from hbfp.system import Accelerator

ACCELERATOR = Accelerator(core=Design(rows=8, cols=8, format=HBFPFormat(mantissa=8, block=(1, 8))))
LOOPS = {"count0": 2, "count1": 1, "count2": 1}
PROGRAM = Program(accelerator=ACCELERATOR, limit=4096, instructions=(
    Instruction(Opcode.LOAD, LOOPS),
    Instruction(Opcode.LOAD, LOOPS | {"memory": 1}),
    Instruction(Opcode.MULTIPLY, {}, (Wait(Unit.LOAD, 2),)),
    Instruction(Opcode.NOP, {"unit": Unit.STORE}, (Wait(Unit.MULTIPLY, 1),)),
    Instruction(Opcode.STORE, LOOPS | {"elements": 1, "run": 3, "count0": 5}, (Wait(Unit.MULTIPLY, 1),)),
    Instruction(Opcode.HALT, {})), layers=(
        Layer("one", 0, 3, 640, (Product(10, 8, 8),)), Layer("two", 3, 6)))
#: Cycles in which each starts and completes, and those it waited before.
TIMES = Times(100, np.array([10, 20, 40, 70, 71, 100]), np.array([19, 38, 70, 70, 95, 100]),
              np.array([0, 0, 15, 30, 0, 0]))


def events(kind, begin):
    """Rows that say the same, as a driver records them, from a cycle on."""
    units = [each.unit for each in PROGRAM.instructions[:-1]]
    rows = {cycle: [0, 0, 0, cycle < TIMES.cycles] for cycle in range(TIMES.cycles + 1)}
    for unit, start, done, waited in zip(units, TIMES.started, TIMES.completed, TIMES.waited, strict=False):
        bit = 1 << unit - 1
        rows[int(start)][0] |= bit
        rows[int(done)][1] |= bit
        for cycle in range(start - waited, start):
            rows[cycle][2] |= bit
    kept, last = [], None
    for cycle, (started, completed, *levels) in rows.items():
        if started or completed or levels != last:
            kept.append((cycle + begin, started, completed, *levels, 0, 0))
        last = levels
    return np.array(kept, kind)
