"""When each instruction of a program started and completed, whoever found it: the Verilog or the cycle model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hbfp.isa.instructions import ENDS, Instruction, Memory, Opcode, Unit
from hbfp.program import Program
from hbfp.system import Accelerator

Cycles = NDArray[np.int64]


class TimesError(ValueError):
    """What was recorded is not what the program does; one line."""


@dataclass(frozen=True)
class Times:
    """Cycles of a run, counted from the doorbell.

    Attributes
    ----------
    cycles : int
        From the doorbell to done.
    started, completed : ndarray, (instructions,)
        The cycle in which an instruction went to its unit, and in which its last effect was in memory. YIELD has that
        in which all before it was complete, and HALT the last cycle.
    waited : ndarray, (instructions,)
        Cycles that it was the next of its unit and its waits did not hold.
    """
    cycles: int
    started: Cycles
    completed: Cycles
    waited: Cycles

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Times) and self.cycles == other.cycles and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("started", "completed", "waited"))


def between_yields(program: Program) -> list[tuple[int, int]]:
    """Of each quantum of a program its first instruction, and the YIELD or HALT that ends it."""
    ends = [number for number, each in enumerate(program.instructions) if each.opcode in ENDS]
    return list(zip([0, *(number + 1 for number in ends[:-1])], ends, strict=True))


def ends(program: Program, cycles: int, started: Cycles, completed: Cycles) -> tuple[Cycles, Cycles]:
    """The times of units' instructions with those of YIELD and HALT, which no unit has."""
    for number, each in enumerate(program.instructions):
        if each.opcode in ENDS:
            now = cycles if each.opcode == Opcode.HALT else completed[:number].max(initial=0)
            started[number] = completed[number] = now
    return started, completed


def from_events(program: Program, events: NDArray[np.void], context: int = 0) -> Times:
    """The times of a run whose events were recorded.

    Parameters
    ----------
    program : Program
        What ran.
    events : ndarray
        Rows with ``cycle``, the masks ``started``, ``completed``, ``waiting``, bit u - 1 for unit u, and ``running``;
        a row for each cycle in which something started or completed, and where one of the others changes. ``running``
        is 0, or 1 and the number of the context that has the machine.
    context : int
        That of the program.

    Raises
    ------
    TimesError
        If the program did not run once, or units did not start and complete as many instructions as it has for them.
    """
    cycle = events["cycle"].astype(np.int64)
    owned = events["running"] == context + 1
    running = np.flatnonzero(np.diff(owned.astype(np.int64), prepend=0, append=0))
    most = 1 + sum(each.opcode == Opcode.YIELD for each in program.instructions)
    if not 1 <= len(running) // 2 <= most:
        raise TimesError(f"A program must run once while events are kept, not {len(running) // 2} times")
    begin = int(cycle[running[0]])
    end = int(cycle[min(running[-1], len(cycle) - 1)])
    count = len(program.instructions)
    started, completed = np.zeros(count, np.int64), np.zeros(count, np.int64)
    waited = np.zeros(count, np.int64)
    length = np.diff(np.append(cycle, end))
    for unit in Unit:
        bit = 1 << unit - 1
        mine = np.array([number for number, each in enumerate(program.instructions) if each.unit == unit], np.int64)
        for name, times in (("started", started), ("completed", completed)):
            found = cycle[(events[name] & bit != 0) & owned] - begin
            if len(found) != len(mine):
                raise TimesError(f"{unit.name} must have {name} {len(mine)} instructions, not {len(found)}")
            times[mine] = found
        waits = ((events["waiting"] & bit != 0) & owned).nonzero()[0]
        if len(mine):
            owner = np.searchsorted(started[mine], cycle[waits] - begin)    # the next one to start then
            np.add.at(waited, mine[np.minimum(owner, len(mine) - 1)], length[waits])
    return Times(end - begin, *ends(program, end - begin, started, completed), waited)


def moved(instruction: Instruction, accelerator: Accelerator) -> int:
    """Bytes that a load or store moves; 0 for all others."""
    if instruction.opcode not in (Opcode.LOAD, Opcode.STORE):
        return 0
    beats = accelerator.beat
    if instruction["elements"]:
        beats = 4 * instruction["run"]
    elif instruction.opcode == Opcode.LOAD and instruction["memory"] == Memory.W:
        beats *= accelerator.record_beats
    return beats * instruction["count0"] * instruction["count1"] * instruction["count2"]


def layers_of(program: Program) -> Sequence[tuple[str, int, int, int]]:
    """Name, first instruction, the one behind the last, and multiply-adds of each layer; all of it if it has none."""
    return [(each.name, each.first, each.stop, each.macs) for each in program.layers] or [
        ("program", 0, len(program.instructions), 0)]


def union(begins: Cycles, ends: Cycles) -> Cycles:
    """Stretches that overlap or touch as one, sorted: begins, and ends."""
    order = np.argsort(begins, kind="stable")
    begins, reach = begins[order], np.maximum.accumulate(ends[order]) if len(ends) else ends
    first = np.flatnonzero(np.concatenate([[True], begins[1:] > reach[:-1]])) if len(begins) else np.zeros(0, np.int64)
    return np.stack([begins[first], reach[np.append(first[1:] - 1, len(begins) - 1)] if len(begins) else ends])
