"""A lowered program on the golden machine in place of the Verilog: bits, and no cycles."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hbfp.golden.machine.dram import Dram
from hbfp.golden.machine.errors import Fault
from hbfp.golden.machine.layouts import pack, unpack
from hbfp.golden.machine.machine import Machine
from hbfp.isa.instructions import Instruction
from hbfp.program import Program

from .host import Result
from .network import NetworkRun, compared

if TYPE_CHECKING:
    from hbfp.golden.lower.lowering import Lowered  # takes torch


class Untimed:
    """The golden machine with a DRAM that stays from one run of a program to the next.

    Parameters
    ----------
    program : Program
    limit : int
        Bytes of its DRAM, the program's if not given.
    races : bool
        Whether accesses that no wait orders are an error.
    """

    def __init__(self, program: Program, limit: int = 0, races: bool = False) -> None:
        self.program, self.dram, self.races = program, Dram(limit or program.limit, program.memory), races

    def write(self, name: str, values: np.ndarray, shift: int = 0) -> None:
        """Write a tensor to DRAM, so many bytes behind its address."""
        tensor = self.program.tensors[name]
        self.dram.put(tensor.address + shift, pack(self.program.accelerator, tensor, values))

    def read(self, name: str, shift: int = 0) -> np.ndarray:
        """A tensor of DRAM, so many bytes behind its address."""
        tensor = self.program.tensors[name]
        data = self.dram.get(tensor.address + shift, tensor.bytes(self.program.accelerator))
        return unpack(self.program.accelerator, tensor, data)

    def rewrite(self, instructions: Mapping[int, Instruction]) -> None:
        """Put instructions in place of those of these numbers."""
        self.program = self.program.rewritten(instructions)

    def turn_to(self, program: Program, kept: range) -> None:
        """Let another program take the place of this one; the bytes ``kept`` of its DRAM stay as they are."""
        self.program = program
        for region in program.memory:
            if region.address not in kept:
                self.dram.put(region.address, region.data)

    def run(self, arguments: Sequence[int] = (), seed: int = 0) -> Result:
        """Execute the program, with nothing in its memories but what DRAM has; MachineError if it is undefined.

        The registers of ``arguments`` and ``seed`` have these values.
        """
        try:
            Machine(replace(self.program, arguments=tuple(arguments), seed=seed), races=self.races,
                    dram=self.dram).run()
        except Fault as error:
            return Result(0, error.cause, error.pc, {}, None)
        return Result(0, None, 0, {}, None)


def run(lowered: "Lowered", layers: bool = False, races: bool = False) -> NetworkRun:
    """Run a lowered network; as :func:`cosim.accelerator.network.run`, without cycles, ``races`` as of Untimed."""
    machine = Untimed(lowered.program, races=races)
    begun = time.perf_counter(), time.process_time()
    result = machine.run()
    spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
    tensors = compared(lowered, layers, machine.read) if result.cause is None else {}
    return NetworkRun(result, tensors, [], *spent, None)
