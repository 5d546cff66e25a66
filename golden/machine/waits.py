"""Which waits an instruction needs, from what it and those before it access."""

from collections.abc import Iterable

import numpy as np

from hbfp.isa.instructions import Unit

from .memories import Memory
from .order import UNITS, Words

#: One access: memory, distinct addresses, whether it is a write.
Accessed = tuple[Memory, np.ndarray, bool]


class Waits:
    """Follows instructions in written order, and says for each which others must be complete before it starts.

    Attributes
    ----------
    counts : dict
        Instructions of each unit so far.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Unit, 0)
        self._words: dict[str, Words] = {}
        self._starts: dict[Unit, list[np.ndarray]] = {unit: [] for unit in Unit}    # of each unit, completed before

    def needed(self, unit: Unit, accesses: Iterable[Accessed]) -> dict[Unit, int]:
        """Unit -> how many of its instructions must be complete before one of ``unit`` with these accesses starts.

        What another wait or an earlier instruction of ``unit`` has brought is left out.
        """
        need = np.zeros(UNITS, np.int32)
        for memory, addresses, write in accesses:
            need = np.maximum(need, self._of(memory).latest(addresses, write))
        known = self._starts[unit][-1] if self._starts[unit] else np.zeros(UNITS, np.int32)
        found = {other: int(need[other]) for other in Unit if other != unit and need[other] > known[other]}
        for other in sorted(found, key=lambda each: -found[each]):    # what another wait brings is no wait of its own
            for third in [third for third in found if third != other]:
                if self._starts[third][found[third] - 1][other] >= found[other]:
                    del found[other]
                    break
        return found

    def add(self, unit: Unit, waits: dict[Unit, int], accesses: Iterable[Accessed] = ()) -> None:
        """Note the next instruction of ``unit``, which starts after ``waits`` and has these accesses."""
        before = self._starts[unit]
        clock = before[-1].copy() if before else np.zeros(UNITS, np.int32)
        for other, count in waits.items():
            if count:
                clock = np.maximum(clock, self._starts[other][count - 1])
                clock[other] = max(clock[other], count)
        before.append(clock)
        self.counts[unit] += 1
        for memory, addresses, write in accesses:
            self._of(memory).note(addresses, write, unit, self.counts[unit])

    def _of(self, memory: Memory) -> Words:
        return self._words.setdefault(memory.name, Words(memory.words))
