"""A program in an array that is its DRAM: tensors and instructions, written and read where they lie."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from hbfp.golden.machine.layouts import pack, unpack
from hbfp.isa.instructions import BYTES, Instruction
from hbfp.program import Program


class Place(Protocol):
    """Where a program and its tensors lie."""

    def write(self, name: str, values: np.ndarray, shift: int = 0) -> None:
        """Write a tensor, so many bytes behind its address."""

    def read(self, name: str, shift: int = 0) -> np.ndarray:
        """A tensor, so many bytes behind its address."""

    def rewrite(self, instructions: Mapping[int, Instruction]) -> None:
        """Put instructions in place of those of these numbers."""


class Placed:
    """The :class:`Place` in an array.

    Parameters
    ----------
    memory : ndarray of uint8
    program : Program
    base, first : int
        Where its data begin, and its instructions.
    """

    def __init__(self, memory: np.ndarray, program: Program, base: int, first: int = 0) -> None:
        self.memory, self.program, self.base, self.first = memory, program, base, first

    def _of(self, name, shift):
        tensor = self.program.tensors[name]
        start = self.base + tensor.address + shift
        return tensor, self.memory[start:start + tensor.bytes(self.program.accelerator)]

    def write(self, name: str, values: np.ndarray, shift: int = 0) -> None:
        """As of :class:`Place`."""
        tensor, here = self._of(name, shift)
        here[:] = np.frombuffer(pack(self.program.accelerator, tensor, values), np.uint8)

    def read(self, name: str, shift: int = 0) -> np.ndarray:
        """As of :class:`Place`."""
        tensor, here = self._of(name, shift)
        return unpack(self.program.accelerator, tensor, here.tobytes())

    def rewrite(self, instructions: Mapping[int, Instruction]) -> None:
        """As of :class:`Place`."""
        self.program = self.program.rewritten(instructions)
        for number, each in instructions.items():
            start = self.first + number * BYTES
            self.memory[start:start + BYTES] = np.frombuffer(each.encode().to_bytes(BYTES, "little"), np.uint8)


def bring(place: Place, step: Any, batch: Any, arguments: tuple[int, ...]) -> None:
    """Write what a step of training takes of a batch; ``arguments`` are those that it is told."""
    for name, values in step.writes(batch).items():
        place.write(name, values, step.shift(name, arguments))
