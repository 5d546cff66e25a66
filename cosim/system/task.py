"""What firmware is to do, in memory: a block, the program file, images, classes, room for the output and for DRAM."""

from dataclasses import dataclass

import numpy as np

from hbfp.program import Program, Tensor

from ..accelerator.host import PAGE, room


@dataclass(frozen=True)
class Task:
    """A network, and images whose classes are known.

    Attributes
    ----------
    program : Program
        Of one input and one output.
    images : ndarray of float32
        As the input has them.
    classes : ndarray of int
    interrupts : bool
        Whether the CPU sleeps until the interrupt; else it polls.
    runs : int
        How often the program runs, one behind the other.
    """
    program: Program
    images: np.ndarray
    classes: np.ndarray
    interrupts: bool = True
    runs: int = 1

    @property
    def output(self) -> Tensor:
        """The tensor."""
        found, = (each for each in self.program.tensors.values() if each.role == "output")
        return found

    def _parts(self, first):
        """The parts as bytes, where each begins, and where the last ends."""
        parts = [self.program.to_bytes(), np.ascontiguousarray(self.images, np.float32).tobytes(),
                 np.ascontiguousarray(self.classes, np.uint8).tobytes(), bytes(4 * int(np.prod(self.output.shape)))]
        places = [first]
        for each in parts:
            places.append(places[-1] + -(-len(each) // PAGE) * PAGE)
        return parts, places

    def laid(self, block: int, origin: int = 0) -> np.ndarray:
        """A memory with all of it.

        Parameters
        ----------
        block : int
            Where the block stands in it; the rest follows in the next page.
        origin : int
            Where CPU and accelerator see the memory.
        """
        parts, places = self._parts(block + PAGE)
        memory = np.zeros(places[-1] + room(self.program)[0], np.uint8)
        for start, each in zip(places, parts, strict=False):
            memory[start:start + len(each)] = np.frombuffer(each, np.uint8)
        file, images, classes, scores, end = (origin + place for place in places)
        told = [file, len(parts[0]), images, classes, scores, end, len(memory) - places[-1], int(self.interrupts),
                self.runs]
        memory[block:block + 4 * len(told)] = np.array(told, "<u4").view(np.uint8)
        return memory

    def scores(self, memory: np.ndarray, block: int) -> np.ndarray:
        """The output that is in a memory of :meth:`laid`."""
        parts, places = self._parts(block + PAGE)
        return memory[places[3]:places[3] + len(parts[3])].view(np.float32).reshape(self.output.shape).copy()
