"""The machine: executes a program in its written order."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from hbfp.isa.instructions import IllegalInstruction, Instruction, Opcode
from hbfp.isa.legal import check
from hbfp.isa.registers import Cause
from hbfp.program import Program, ProgramError
from hbfp.system import Accelerator, Share

from .convert import convert
from .core import Core
from .dma import load, store
from .dram import Dram
from .errors import Fault, MachineError
from .layouts import pack, unpack
from .memories import Memories
from .order import Order
from .vector import Vector


class Machine:
    """An accelerator with a program, untimed and bit exact.

    Parameters
    ----------
    program : Program
        What it executes.
    races : bool
        Whether to check that accesses of different units are ordered by waits.
    memories : Memories, optional
        Its share of memories that others use, too; by default memories of its own, of the program's accelerator.
    dram : Dram, optional
        What a run before has left there, in place of the program's own memory.

    Attributes
    ----------
    memories : Memories
    dram : Dram
        From the base register to the program's limit.
    """

    def __init__(self, program: Program, races: bool = False, memories: Memories | None = None,
                 dram: Dram | None = None) -> None:
        self.program, self.accelerator = program, program.accelerator
        self.memories = Memories(self.accelerator) if memories is None else memories
        self.dram = Dram(program.limit, program.memory) if dram is None else dram
        self.order = Order(self.accelerator.queue, races)
        self.core = Core(self.accelerator, self.memories, self.order)
        self.vector = Vector(self.accelerator, self.memories, program.arguments, program.seed)
        if races:
            for memory in (*self.memories.all, self.dram):
                memory.watch = self.order.watch
        both = self.accelerator, self.memories
        self._work: dict[Opcode, Callable[[Instruction], None]] = {
            Opcode.LOAD: partial(self._transfer, load), Opcode.STORE: partial(self._transfer, store),
            Opcode.CONVERT: partial(convert, *both, program.seed), Opcode.VECTOR: self.vector.run,
            Opcode.NOP: lambda instruction: None}
        self._core: dict[Opcode, Callable[[Instruction, int], None]] = {
            Opcode.WEIGHTS: self.core.weights, Opcode.MULTIPLY: self.core.multiply, Opcode.DRAIN: self.core.drain}

    def run(self) -> None:
        """Execute the program to its end.

        Raises
        ------
        Fault
            Where the hardware stops with an error: its cause, and the number of the instruction.
        MachineError
            Where the program's result is undefined, or it could never end.
        """
        for _ in self.turns():
            pass

    def turns(self) -> Iterator[None]:
        """Execute the program, and yield after each YIELD; raises as :meth:`run`."""
        number = 0
        try:
            for number, instruction in enumerate(self.program.instructions):
                if self.step(number, instruction):
                    return
                if instruction.opcode == Opcode.YIELD:
                    yield
            number = len(self.program.instructions)
            raise Fault(Cause.END, "a program must end with HALT")
        except MachineError as error:
            if error.pc >= 0:
                raise
            if isinstance(error, Fault):
                raise Fault(error.cause, error.text, number) from None
            raise MachineError(error.text, number) from None

    def step(self, number: int, instruction: Instruction) -> bool:
        """Execute one instruction, whose number counts from 0, and say whether it was HALT; raises as :meth:`run`."""
        try:
            check(instruction, self.accelerator)
        except IllegalInstruction as error:
            raise Fault(Cause.ILLEGAL, str(error)) from None
        self.order.meet(number, instruction)
        if (unit := instruction.unit) is None:
            self.core.finish()
            if instruction.opcode == Opcode.HALT:
                return True
            self.order.restart()
            self.vector.restart()
            return False
        if instruction.opcode in self._core:
            self._core[instruction.opcode](instruction, number)
        else:
            self._work[instruction.opcode](instruction)
            self.order.complete(unit, number)
        return False

    def _transfer(self, work, instruction):
        """Execute a LOAD or STORE, from where its argument lets it begin."""
        try:
            offset = self.program.offset(instruction)
        except ProgramError:
            number = instruction["argument"]
            what = f"Argument {number} is read" if number else f"The place of request {instruction['request']} is read"
            raise MachineError(f"{what}, which the host has not written") from None
        work(self.accelerator, self.memories, self.dram, instruction, offset)

    # --- Tensors --------------------------------------------------------------------------------

    def set(self, name: str, values: np.ndarray) -> None:
        """Write a tensor, float32 of its shape, to DRAM; weights of layout ``records`` are encoded.

        Raises
        ------
        KeyError
            If the program has no tensor of that name.
        ValueError
            If the shape is another.
        """
        tensor = self.program.tensors[name]
        self.dram.put(tensor.address, pack(self.accelerator, tensor, values))

    def get(self, name: str) -> np.ndarray:
        """A tensor of DRAM: float32 of its shape; KeyError if there is none, MachineError if it is undefined."""
        tensor = self.program.tensors[name]
        return unpack(self.accelerator, tensor, self.dram.get(tensor.address, tensor.bytes(self.accelerator)))


def together(accelerator: Accelerator, programs: Sequence[Program], shares: Sequence[Share], *, priority: bool = False
             ) -> list[Machine]:
    """Execute programs in contexts of one machine, all of which are started before the first of them yields.

    Parameters
    ----------
    accelerator : Accelerator
        Whose memories they share.
    programs : sequence of Program
        One for each context. The first begins, and a YIELD gives the next its turn.
    shares : sequence of Share
        What each context has of the memories; shares may overlap.
    priority : bool
        Whether context 0 runs to its end before the others.

    Returns
    -------
    list of Machine
        One for each context, with its own DRAM.

    Raises
    ------
    Fault, MachineError
        As :meth:`Machine.run` raises them.
    """
    memories = Memories(accelerator)
    machines = [Machine(program, memories=memories.share(accelerator, share))
                for program, share in zip(programs, shares, strict=True)]
    going = [machine.turns() for machine in machines]
    if priority:
        for _ in going.pop(0):
            pass
    while going:
        going = [each for each in going if next(each, going) is None]
    return machines
