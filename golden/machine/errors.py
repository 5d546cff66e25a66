"""How a program ends before HALT: with an error status of the hardware, or because its result is undefined."""

from hbfp.isa.registers import Cause


class MachineError(ValueError):
    """A program whose result is undefined: it reads what nothing has written, cannot go on, or races.

    Attributes
    ----------
    pc : int
        Number of the instruction, from 0; -1 if it is not known yet.
    """

    def __init__(self, message: str, pc: int = -1) -> None:
        self.pc, self.text = pc, message
        super().__init__(f"Instruction {pc}: {message}" if pc >= 0 else message)


class Fault(MachineError):
    """The hardware's error status: the program stops with a cause and the number of an instruction.

    Attributes
    ----------
    cause : Cause
    """

    def __init__(self, cause: Cause, message: str, pc: int = -1) -> None:
        self.cause = cause
        super().__init__(message, pc)
