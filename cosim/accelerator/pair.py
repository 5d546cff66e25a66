"""Two programs in the contexts of one accelerator: both doorbells, and what came of each."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hbfp.program import Program
from hbfp.system import Share

from .device import Device
from .host import PAGE, Result, finish, place, prepare, put, read, result, room, write

#: Sixteenths of the memories that each of two random programs is made for.
PART = 4


@dataclass(frozen=True)
class Pair:
    """Two programs that share an accelerator.

    Attributes
    ----------
    programs : tuple of Program
        Those of context 0 and 1, each made for an accelerator with no more memory than its share.
    shares : tuple of Share
    priority : bool
        Whether context 0 keeps the machine at its YIELDs.
    """
    programs: tuple[Program, ...]
    shares: tuple[Share, ...]
    priority: bool = False

    @property
    def second(self) -> int:
        """Address of the second program's instructions in DRAM."""
        return -(-room(self.programs[0])[0] // PAGE) * PAGE

    @property
    def size(self) -> int:
        """Bytes of DRAM that they need."""
        return self.second + room(self.programs[1])[0]

    def place(self, memory: np.ndarray) -> None:
        """Put both, and what they find, into a DRAM of at least :attr:`size` bytes; the rest is made undefined."""
        place(self.programs[0], memory)
        put(self.programs[1], memory[self.second:])

    def dram(self, memory: np.ndarray, context: int) -> np.ndarray:
        """The bytes from a program's base up to its limit."""
        start = self.second * context + room(self.programs[context])[1]
        return memory[start:start + self.programs[context].limit]


@dataclass(frozen=True)
class Ended:
    """What came of a pair.

    Attributes
    ----------
    results : tuple of Result
        What came of each program.
    rung : tuple of int
        Cycles of the doorbells, the first one's being 0.
    begun : tuple of int
        Cycles in which they got the machine first, counted from the one after the first doorbell.
    cycles : int
        Counted from the one after the first doorbell to the end of both.
    changes : int
        How often the machine went from one to the other.
    """
    results: tuple[Result, ...]
    rung: tuple[int, ...]
    begun: tuple[int, ...]
    cycles: int
    changes: int


def execute(device: Device, pair: Pair, *, after: tuple[int, int] = (0, 0), **options: Any) -> Ended:
    """Run two programs that are in the device's memory to their ends, well or not.

    Parameters
    ----------
    device : Device
    pair : Pair
    after : tuple of int
        Cycles that go by before each doorbell: that of context 0 is rung before the other.
    options
        As for :func:`~cosim.accelerator.host.settings`.

    Returns
    -------
    Ended

    Raises
    ------
    BusError, TimesError
        As for :func:`~cosim.accelerator.host.execute`.
    """
    write(device, "yielding", int(pair.priority))
    for context, (program, share) in enumerate(zip(pair.programs, pair.shares, strict=True)):
        prepare(device, program, context, address=pair.second * context, share=share, **options)
    device.record()
    rung = []
    for context, cycles in enumerate(after):
        device.idle(cycles)
        write(device, "control", 1, context)
        rung.append(device.cycle - 2)    # what was written is answered a cycle later
    results: list[Result | None] = [None, None]
    while None in results:
        finish(device)
        for context in (0, 1):
            if results[context] is None and read(device, "interrupt_status", context):
                results[context] = result(device, pair.programs[context], context)
    events = device.events()
    begun = tuple(int(events["cycle"][events["running"] == context + 1][0]) - rung[0] - 1 for context in (0, 1))
    owners = events["running"][events["running"] > 0]
    last = events["cycle"][np.flatnonzero(events["running"])[-1] + 1]
    return Ended(tuple(each for each in results if each), tuple(cycle - rung[0] for cycle in rung), begun,
                 int(last) - rung[0] - 1, int(np.count_nonzero(np.diff(owners.astype(np.int64)))))
