"""Random words as instructions on the Verilated accelerator: errors as defined, no hang, and the next program runs.

A word stands between a part that fills all memories and one that brings every word of them to DRAM, all units waiting
before it and after it. So what a legal word does is compared, too, wherever its result is defined.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from random import Random

import numpy as np

from hbfp.golden.machine.errors import Fault, MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.golden.machine.memories import Memory
from hbfp.golden.machine.random_programs import random_program
from hbfp.isa.instructions import FIELDS, WORD, IllegalInstruction, Instruction, Opcode, Unit, Wait, decode
from hbfp.isa.legal import check
from hbfp.isa.registers import Cause
from hbfp.program import Program
from hbfp.system import Accelerator

from ..manifest import Manifest
from ..simulate.verilator import Progress
from .device import Device
from .host import execute, place, read, ring, room, write

#: Cycles without progress until a program is stopped, and cycles until the host stops it.
WATCHDOG, PATIENCE = 1000, 30_000
#: Cycles after an error in which nothing may be written.
AFTER = 300
#: Words that are drawn from the instructions of one random program.
_POOL = 50
#: Steps of an instruction above which the golden machine is not asked.
_LONG = 1 << 14
#: Of a command of the core, which needs all three.
_PARTS = (Opcode.WEIGHTS, Opcode.MULTIPLY, Opcode.DRAIN)
_DONE, _ERROR = 2, 4


@dataclass(frozen=True)
class Found:
    """What came of random words.

    Attributes
    ----------
    words : int
        How many were executed.
    kinds : dict
        What they were: ``illegal``; ``fault``, legal and stopped with an error; ``part``, such a fault of WEIGHTS,
        MULTIPLY or DRAIN, where the watch-dog may come first, since the rest of the command never comes; ``executed``,
        compared with the golden machine; ``undefined``, without a result to compare. And how many of each.
    failures : dict
        Number of a word -> what is wrong, one line.
    """
    words: int
    kinds: dict[str, int]
    failures: dict[int, str]


@lru_cache(1)
def _legal(system, seed):
    """Legal instructions of all kinds; transfers begin where they did, with the arguments that words find."""
    program, found = random_program(system, seed), around(system)[0].arguments
    return [each if not each["argument"] else replace(each, values=each.values | {
        "offset": program.offset(each) - found[each["argument"] - 1] & 0xFFFFFFFF})
            for each in program.instructions if each.opcode != Opcode.HALT]


def random_word(system: Accelerator, number: int) -> int:
    """The word of a number: random bits; random fields; a legal instruction with a bit or a field changed."""
    pick = Random(number)
    instruction = pick.choice(_legal(system, number // _POOL))
    if pick.random() < 0.8:
        instruction = replace(instruction, waits=())
    match pick.choice(("bits", "fields", "bit", "bit", "field", "field")):
        case "bits":
            return pick.getrandbits(WORD)
        case "fields":
            opcode = pick.choice([code for code in Opcode if FIELDS[code]])
            values = {field.name: pick.randint(*field.range) for field in FIELDS[opcode]}
            return Instruction(opcode, values).encode()
        case "bit":
            return instruction.encode() ^ 1 << pick.randrange(WORD if pick.random() < 0.2 else 400)
    field = pick.choice(FIELDS[instruction.opcode])
    value = pick.choice((*field.range, 0, 1, pick.randint(*field.range)))
    return replace(instruction, values=instruction.values | {field.name: value}).encode()


def around(system: Accelerator) -> tuple[Program, int]:
    """A program of all units that fills the memories and brings them to DRAM, and the place in it for a word.

    Until a word is put there, the place holds a NOP of LOAD.
    """
    program = random_program(system, 0, 0)
    end = next(number for number, each in enumerate(program.instructions) if each.opcode == Opcode.STORE)
    fill, dump = program.instructions[:end], program.instructions[end:]
    before = [Wait(unit, sum(each.unit == unit for each in fill)) for unit in (Unit.LOAD, Unit.CONVERT)]
    stop = [Instruction(Opcode.NOP, {"unit": unit}, tuple(before)) for unit in Unit]
    word = Instruction(Opcode.NOP, {"unit": Unit.LOAD})
    return replace(program, instructions=_gone_on([*fill, *stop], word, dump)), end + len(stop)


def _gone_on(before, word, dump):
    """Instructions: those before the word, the word, NOPs by which all units wait for it, and the rest."""
    count = sum(each.unit == word.unit for each in before) + 1
    go_on = [Instruction(Opcode.NOP, {"unit": unit}, (Wait(word.unit, count),)) for unit in Unit if unit != word.unit]
    later = [replace(each, waits=tuple(Wait(wait.unit, wait.count + 2) for wait in each.waits)) for each in dump]
    return [*before, word, *go_on, *later]


def put(program: Program, at: int, instruction: Instruction) -> Program:
    """The program of :func:`around` with a legal instruction in its place."""
    old = program.instructions
    dump = [replace(each, waits=tuple(Wait(wait.unit, wait.count - 2) for wait in each.waits))
            for each in old[at + len(Unit):]]
    return replace(program, instructions=_gone_on(old[:at], instruction, dump))


def _steps(instruction):
    """About how many times an instruction does something."""
    names = [name for name in instruction.values if name.startswith(("count", "rows", "passes", "columns", "tiles",
                                                                     "repeats", "words"))]
    return prod(max(1, instruction[name]) for name in names)


def expected(program: Program, at: int, word: int) -> tuple[str, Program, Cause | Memory | None]:
    """What a word does: its kind, the program, and the cause of its error or the DRAM that it leaves."""
    try:
        instruction = decode(word)
        check(instruction, program.accelerator)
    except IllegalInstruction:
        return "illegal", program, Cause.ILLEGAL
    if instruction.opcode == Opcode.HALT or _steps(instruction) > _LONG:
        return "undefined", program, None
    program = put(program, at, instruction)
    machine = Machine(program)
    try:
        machine.run()
    except Fault as fault:
        kind = "part" if instruction.opcode in _PARTS else "fault"
        return (kind, program, fault.cause) if fault.pc == at else ("undefined", program, None)
    except MachineError:
        return "undefined", program, None
    return "executed", program, machine.dram


class _Bench:
    """A device, the program around words, and what that leaves in DRAM without one."""

    def __init__(self, device, system):
        self.device, self.memory = device, device.memory
        self.plain, self.at = around(system)
        self.golden = Machine(self.plain)
        self.golden.run()

    def differences(self, program, dram):
        """Words of DRAM that are not what the golden machine has, of those that it has."""
        base, known = room(program)[1], dram.defined[:, 0]
        return int(((self.memory[base:base + program.limit].view(np.uint32) != dram.data) & known).sum())

    def execute(self, word):
        """Execute a word; its kind, and what is wrong or None."""
        kind, program, result = expected(self.plain, self.at, word)
        place(program, self.memory)
        self.memory[64 * self.at:64 * self.at + 64] = np.frombuffer(word.to_bytes(64, "little"), np.uint8)
        before = self.memory.copy()
        wrong = self._run(kind, program, result, before)
        return kind, wrong or self._next()

    def _run(self, kind, program, result, before):
        device = self.device
        ring(device, program, watchdog=WATCHDOG)
        if not device.run(PATIENCE):
            write(device, "control", 2)
            if not device.run(PATIENCE):
                return "the program goes on though the host has stopped it"
        status, cause, number = (read(device, name) for name in ("status", "cause", "error_pc"))
        left = self.memory.copy()
        device.idle(AFTER)
        base = room(program)[1]
        reach = slice(base, base + program.limit)
        if not np.array_equal(self.memory, left):
            return "DRAM has changed after the end"
        if not (np.array_equal(left[:base], before[:base]) and np.array_equal(left[reach.stop:], before[reach.stop:])):
            return "DRAM has changed beyond the program's reach"
        if status not in (_DONE, _ERROR):
            return f"status is {status} after the end"
        if kind == "executed":
            if status == _ERROR:
                return f"stops with cause {Cause(cause).name} at instruction {number}"
            wrong = self.differences(program, result)
            return f"{wrong} words of DRAM differ" if wrong else None
        if kind != "undefined" and (status, cause, number) != (_ERROR, result, self.at):
            told = f"cause {Cause(cause).name} at instruction {number}" if status == _ERROR else "no error"
            if kind == "part" and (status, cause) == (_ERROR, Cause.WATCHDOG):
                return None
            return f"{told}, not {result.name} at instruction {self.at}"
        if kind == "illegal" and not np.array_equal(left, before):
            return "DRAM has changed before the end"
        return None

    def _next(self):
        """What is wrong with the program that comes next, or None."""
        place(self.plain, self.memory)
        result = execute(self.device, self.plain)
        if result.cause is not None:
            return f"the next program stops with cause {result.cause.name}"
        wrong = self.differences(self.plain, self.golden.dram)
        return f"{wrong} words of the next program differ" if wrong else None


def run(manifest: Manifest, system: Accelerator, numbers: Sequence[int], *, level: str = "-O1",
        progress: Progress | None = None, tell: Progress | None = None) -> Found:
    """Execute the words of numbers, each followed by a program that is compared.

    Parameters
    ----------
    manifest : Manifest
        The emitted accelerator.
    system : Accelerator
        Its parameters.
    numbers : sequence of int
        Numbers of words, as :func:`random_word` takes them.
    level, progress
        As for :class:`~cosim.accelerator.device.Device`.
    tell : callable, optional
        Called with (done, total) as words end.

    Returns
    -------
    Found

    Raises
    ------
    BuildError, BusError, TimesError
        As for :func:`~cosim.accelerator.network.run`.
    """
    kinds: Counter[str] = Counter()
    failures = {}
    memory = np.empty(room(around(system)[0])[0] + 4096, np.uint8)
    with Device(manifest.verilog, manifest.top, beat=system.beat, memory=memory, burst=system.burst, level=level,
                progress=progress) as device:
        bench = _Bench(device, system)
        for count, number in enumerate(numbers, 1):
            kind, wrong = bench.execute(random_word(system, number))
            kinds[kind] += 1
            if wrong:
                failures[number] = f"{kind}: {wrong}"
            if tell is not None:
                tell(count, len(numbers))
    return Found(len(numbers), dict(kinds), failures)
