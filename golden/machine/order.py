"""The order of instructions: whether waits can be met, and whether they order accesses of different units."""

from collections import defaultdict

import numpy as np

from hbfp.isa.instructions import Instruction, Unit, Wait

from .errors import MachineError
from .memories import Memory

#: Length of a list by unit; units have the numbers from 1 on.
UNITS = len(Unit) + 1
#: More than any count.
_ALWAYS = np.iinfo(np.int32).max


class Order:
    """Which instructions have been met and completed, in written order.

    Parameters
    ----------
    queue : int
        Instructions that the queue of a unit holds.
    races : bool
        Whether the machine reports every access to :meth:`watch`.
    """

    def __init__(self, queue: int, races: bool = False) -> None:
        self.queue, self.races = queue, races
        self.number = -1                                             # of the instruction whose accesses are seen
        self.restart()

    def restart(self) -> None:
        """Begin all counts anew, as a YIELD does: all before it is complete before anything behind it starts."""
        self.met: dict[Unit, list[int]] = defaultdict(list)          # numbers of instructions by unit
        self.done: dict[Unit, set[int]] = defaultdict(set)
        self.completed = dict.fromkeys(Unit, 0)                      # of each unit, in its order
        self.starts: dict[int, np.ndarray] = {}                      # by instruction: of each unit, completed before
        self.places: dict[int, tuple[Unit, int]] = {}                # by instruction: its unit, its count there
        self.words: dict[str, Words] = {}

    def meet(self, number: int, instruction: Instruction) -> None:
        """Note the next instruction; MachineError if it cannot start, or does not fit into its unit's queue."""
        self.number = number
        for wait in instruction.waits:
            self._check(wait)
        unit = instruction.unit
        if unit is None:
            return
        before = self.met[unit]
        if len(before) - self.completed[unit] >= self.queue:
            raise MachineError(f"{unit.name} must have at most {self.queue} instructions uncompleted in written order, "
                               "as many as its queue holds")
        clock = self.starts[before[-1]].copy() if before else np.zeros(UNITS, np.int32)
        for wait in instruction.waits:
            if wait.count:
                last = self.met[wait.unit][wait.count - 1]
                clock = np.maximum(clock, self.starts[last])
                clock[wait.unit] = max(clock[wait.unit], wait.count)
        before.append(number)
        self.starts[number] = clock
        self.places[number] = unit, len(before)

    def _check(self, wait: Wait):
        if self.completed[wait.unit] < wait.count:
            met = len(self.met[wait.unit])
            raise MachineError(
                f"A wait for {wait.count} instructions of {wait.unit.name} must be met by those before it: {met} are "
                f"written, {self.completed[wait.unit]} are complete")

    def complete(self, unit: Unit, number: int) -> None:
        """Note that all effects of an instruction are in memory."""
        done, met = self.done[unit], self.met[unit]
        done.add(number)
        while self.completed[unit] < len(met) and met[self.completed[unit]] in done:
            done.remove(met[self.completed[unit]])
            self.completed[unit] += 1

    # --- Races ----------------------------------------------------------------------------------

    def watch(self, memory: Memory, addresses: np.ndarray, write: bool) -> None:
        """Note an access of instruction ``number`` to distinct addresses; MachineError if no wait orders it."""
        if (words := self.words.get(memory.name)) is None:
            words = self.words[memory.name] = Words(memory.words)
        unit, count = self.places[self.number]
        clock = self.starts[self.number].copy()
        clock[unit] = _ALWAYS    # a unit executes its own in order
        found = words.conflict(addresses, write, clock)
        if found is not None:
            address, other, place = found
            raise MachineError(f"{memory.at(address)} is {'written' if write else 'read'} by it, and used by "
                               f"instruction {self.met[Unit(other)][place - 1]} of {Unit(other).name}: no wait orders "
                               "them")
        words.note(addresses, write, unit, count)


class Words:
    """Who has last written each word of a memory, and who has last read it, unit by unit."""

    def __init__(self, words: int) -> None:
        self.writer = np.zeros(words, np.int8)
        self.written = np.zeros(words, np.int32)
        self.read = np.zeros((UNITS, words), np.int32)

    def conflict(self, addresses: np.ndarray, write: bool, clock: np.ndarray) -> tuple[int, int, int] | None:
        """(address, unit, count) of an access that contradicts this one and is later than ``clock``, or None.

        ``clock`` has, for each unit, how many of its instructions are complete before this access.
        """
        late = clock[self.writer[addresses]] < self.written[addresses]
        if late.any():
            address = int(addresses[late][0])
            return address, int(self.writer[address]), int(self.written[address])
        if write:
            late = self.read[:, addresses] > clock[:, None]
            if late.any():
                unit, place = (int(each[0]) for each in np.nonzero(late))
                return int(addresses[place]), unit, int(self.read[unit, addresses[place]])
        return None

    def latest(self, addresses: np.ndarray, write: bool) -> np.ndarray:
        """For each unit, the count of the last of its instructions whose accesses contradict this one."""
        last = np.zeros(UNITS, np.int32)
        np.maximum.at(last, self.writer[addresses], self.written[addresses])
        return np.maximum(last, self.read[:, addresses].max(1, initial=0)) if write else last

    def note(self, addresses: np.ndarray, write: bool, unit: int, count: int) -> None:
        """Note an access of instruction number ``count`` of a unit."""
        if write:
            self.writer[addresses], self.written[addresses] = unit, count
        else:
            self.read[unit, addresses] = count
