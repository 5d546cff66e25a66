"""The queue of a unit, cycle by cycle: instructions come in their order and start when their waits hold."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hbfp.isa.instructions import WAITS

State = NDArray[np.int64]

#: Instructions that a unit may have taken and not completed.
MOST_TAKEN = 31
#: Places of the state: number of the unit's next instruction; words in the memory behind the head; whether there is a
#: head; the wait that is looked at; instructions that the unit has taken and not completed.
HEAD, BEHIND, VALID, AT, TAKEN = range(5)
SIZE = 5


@njit
def room(s: State, depth: int) -> bool:
    """Whether another instruction has room."""
    return s[BEHIND] + s[VALID] != depth


@njit
def look(s: State, waits: State, counts: State) -> tuple[bool, bool]:
    """Whether the wait of the head, ``waits`` (3, 2), that is looked at holds, and whether it is the last one."""
    at = s[AT]
    holds = counts[waits[at, 0]] >= waits[at, 1]
    for later in range(at + 1, WAITS):
        if waits[later, 0] != 0:
            return holds, False
    return holds, True


@njit
def step(s: State, push: bool, taken: bool, nop: bool, done: bool, holds: bool, last: bool) -> None:
    """The end of a cycle.

    Whether an instruction comes in, the unit takes the head, the head is a NOP that completes, the unit completes one;
    and what :func:`look` said.
    """
    pop = taken or nop
    if pop:
        s[AT] = 0
    elif s[VALID] == 1 and holds and not last:
        s[AT] += 1
    s[TAKEN] += taken - done
    read = s[BEHIND] > 0 and (pop or s[VALID] == 0)
    s[BEHIND] += push - read
    s[HEAD] += pop
    s[VALID] = read or (s[VALID] == 1 and not pop)
