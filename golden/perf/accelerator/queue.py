"""The queue of a unit, cycle by cycle: instructions come in their order and start when their waits hold."""

import numpy as np
from numpy.typing import NDArray

from hbfp.isa.instructions import WAITS, Opcode, Unit

from .decode import INSTRUCTION
from .record import Record, part, record

#: Units, and one before them that instructions without a unit count as.
UNITS = len(Unit) + 1
#: Instructions that a unit may have taken and not completed.
MOST_TAKEN = 31
_NOP = int(Opcode.NOP)

STATE = record(
    # Words that it holds; place of the next one among the unit's instructions; words in the memory behind the head;
    # the wait that is looked at; instructions that the unit has taken and not completed, and completed since a YIELD.
    "depth next behind at taken completed "
    # The number of the instruction at the head.
    "head",
    # Whether there is a head, and it is there as ``instruction``.
    "valid known "
    # Wires: of the head, whether the wait holds and is the last, it is offered to its unit, or a NOP that completes;
    # from the unit: it takes the head, begins it, completes one.
    "holds last ready nop takes begins done", instruction=INSTRUCTION)


def fresh(depth: int) -> NDArray[np.void]:
    """The queues at reset."""
    state = np.zeros(UNITS, STATE)
    state["depth"] = depth
    return state


@part
def look(queues: Record, instructions: NDArray[np.void], numbers: NDArray[np.int64], owner: int) -> bool:
    """The begin of a cycle: which heads are ready; whether all queues are empty and all units have done their work."""
    empty = True
    for u in range(1, UNITS):
        q = queues[u]
        q.ready = q.nop = q.takes = q.begins = q.done = False
        if q.valid:
            empty = False
            if not q.known:
                q.head, q.known = numbers[owner, u, q.next], True
                q.instruction = instructions[q.head]
            _look(q, queues, q.instruction.waits)
            if not (q.holds and q.last):
                instructions[q.head].waited += 1
            elif q.instruction.opcode == _NOP:
                q.nop = q.taken == 0
            else:
                q.ready = q.taken != MOST_TAKEN
        elif q.behind != 0 or q.taken != 0:
            empty = False
    return empty


@part
def _look(q, queues, waits):
    """Whether the wait that is looked at holds, and whether it is the last one."""
    q.holds, q.last = queues[waits[q.at, 0]].completed >= waits[q.at, 1], True
    for later in range(q.at + 1, WAITS):
        if waits[later, 0] != 0:
            q.last = False


@part
def room(q: Record) -> bool:
    """Whether another instruction has room."""
    return q.behind + q.valid != q.depth


@part
def step(q: Record, push: bool) -> None:
    """The end of a cycle; ``push``: an instruction comes in."""
    pop = q.takes or q.nop
    if pop:
        q.at, q.known = 0, False
    elif q.valid and q.holds and not q.last:
        q.at += 1
    q.taken += q.takes - q.done
    q.completed += q.done or q.nop
    read = q.behind > 0 and (pop or not q.valid)
    q.behind += push - read
    q.next += pop
    q.valid = read or (q.valid and not pop)
