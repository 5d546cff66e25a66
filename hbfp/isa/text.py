"""Instructions as text: the disassembler."""

from collections.abc import Callable, Iterable

from ..program import Program
from .instructions import FIELDS, Instruction


def line(instruction: Instruction) -> str:
    """One instruction: opcode, fields that are not 0, and what it waits for."""
    values = [f"{field.name}={instruction[field.name]}" for field in FIELDS[instruction.opcode]
              if instruction[field.name]]
    waits = [f"{wait.unit.name}:{wait.count}" for wait in instruction.waits]
    return " ".join([instruction.opcode.name, *values, *(["after", *waits] if waits else [])])


def listing(program: Program, notes: Callable[[Instruction], Iterable[str]] = lambda instruction: ()) -> str:
    """A program's instructions with their numbers, each layer's below a line with its name.

    ``notes`` gives lines that stand below an instruction.
    """
    width = len(str(len(program.instructions)))
    names: dict[int, list[str]] = {}
    for layer in program.layers:
        names.setdefault(layer.first, []).append(layer.name)
    lines = []
    for number, instruction in enumerate(program.instructions):
        lines += [f"{name}:" for name in names.get(number, [])]
        lines.append(f"{number:{width}}  {line(instruction)}")
        lines += [f"{'':{width}}    {note}" for note in notes(instruction)]
    return "\n".join(lines) + "\n"
