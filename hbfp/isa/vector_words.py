"""What memory P gets: the words of the vector unit that a program's loads bring."""

from bisect import bisect_right
from collections.abc import Iterator

from ..program import Program
from .instructions import Instruction, Memory, Opcode

#: Bytes of a word.
BYTES = 8


def loads(instruction: Instruction) -> bool:
    """Whether an instruction writes memory P."""
    return instruction.opcode == Opcode.LOAD and instruction["memory"] == Memory.P


def loaded(program: Program, instruction: Instruction) -> Iterator[tuple[int, list[int] | None]]:
    """Words that a LOAD into P brings from the DRAM that the program comes with.

    Yields
    ------
    (int, list of int or None)
        Place in P of the first word of a beat, and its words; None where the program does not say what the beat holds.
    """
    beat, offset = program.accelerator.beat, program.offset(instruction)
    for i2 in range(instruction["count2"]):
        for i1 in range(instruction["count1"]):
            for i0 in range(instruction["count0"]):
                place = instruction["base"] + i2 * instruction["buffer2"] + i1 * instruction["buffer1"] + i0
                data = _given(program, offset + i2 * instruction["dram2"] + i1 * instruction["dram1"] + i0 * beat, beat)
                yield place * beat // BYTES, None if data is None else [
                    int.from_bytes(data[at:at + BYTES], "little") for at in range(0, beat, BYTES)]


def read(program: Program) -> Iterator[tuple[int, list[int | None]]]:
    """Number of each VECTOR of a program, and the words of P that it reads; None for those that nothing has brought."""
    memory: list[int | None] = [None] * program.accelerator.p_words
    nothing: list[int | None] = [None] * (program.accelerator.beat // BYTES)
    for number, each in enumerate(program.instructions):
        if loads(each):
            for place, brought in loaded(program, each):
                memory[place:place + len(nothing)] = brought or nothing
        elif each.opcode == Opcode.VECTOR:
            yield number, memory[each["program"]:each["program"] + each["before"] + each["body"]]


def _given(program: Program, address: int, size: int) -> bytes | None:
    """Bytes of DRAM before the run, those behind a region as zeros; None if it has none there."""
    number = bisect_right(program.memory, address, key=lambda region: region.address) - 1
    if number < 0 or address >= program.memory[number].end:
        return None
    region = program.memory[number]
    return region.data[address - region.address:address - region.address + size].ljust(size, b"\0")
