"""Each field of an instruction at both ends of what is legal, and one beyond, from the table of the instruction set.

A corner is a field, by itself or where the fields that a rule of it names have their values, and an end of what it may
be there: the least and the greatest value with which some instruction is legal, and the next one beyond. A value beyond
the field's bits has no word: the encoder has to refuse it. Other corners are those of the header (opcodes, waits, and
bits that no field has), and rules of several fields, all of which are 0.

An instruction stands where it does in a random program, with the rest of its command, if it is one of the core's;
before it all memories are filled, and behind it they are brought to DRAM.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from random import Random

from hbfp.golden.machine import random_programs
from hbfp.golden.machine.errors import Fault, MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.isa.instructions import (
    COUNT_BITS,
    FIELDS,
    HEADER,
    WAITS,
    WORD,
    IllegalInstruction,
    Instruction,
    Memory,
    Opcode,
    Unit,
    Wait,
    decode,
    width,
)
from hbfp.isa.legal import RULES, Must, Rule, check, sizes
from hbfp.isa.registers import Cause
from hbfp.program import Program
from hbfp.system import Accelerator

#: Random programs that instructions are taken from, and the most of these that a corner tries.
PROGRAMS, TRIES = 12, 60
#: Steps of an instruction above which the golden machine is not asked.
LONG = 1 << 20
CORE = (Opcode.WEIGHTS, Opcode.MULTIPLY, Opcode.DRAIN)
#: Commands of one row that are as long as counts may be: repeats of a tile, columns, passes of two loops.
COMMANDS = ((1, 1, 1, 1), (4095, 4095, 1, 1), (65535, 1, 257, 255))
NEVER = (1 << COUNT_BITS) - 1
YIELD = Instruction(Opcode.YIELD, {})


@dataclass(frozen=True)
class Scene:
    """An instruction in its place: the program's seed, what of its command stands before and behind."""
    seed: int
    instruction: Instruction
    before: tuple[Instruction, ...] = ()
    behind: tuple[Instruction, ...] = ()

    def having(self, **values: int) -> "Scene":
        """With other values of fields."""
        return replace(self, instruction=replace(self.instruction, values={**self.instruction.values, **values}))

    @property
    def steps(self) -> int:
        """About how many times it does something."""
        values = self.instruction.values
        names = ("count", "rows", "passes", "columns", "repeats", "words", *("tiles",) * ("passes0" not in values))
        return prod(max(1, value) for name, value in values.items() if name.startswith(names))


@dataclass(frozen=True)
class Corner:
    """What is asked for, in words.

    Attributes
    ----------
    name : str
    legal : bool
    scenes : tuple of Scene
        With a legal instruction that is it, or that is legal but for ``flip``; one is as good as another.
    flip : int
        Bits of the word that are other ones, where no instruction has such a word.
    beyond : (str, int) or None
        Field and value that it has in a word which is not legal.
    never : bool
        Whether it waits for what never comes.
    """
    name: str
    legal: bool
    scenes: tuple[Scene, ...]
    flip: int = 0
    beyond: tuple[str, int] | None = None
    never: bool = False

    def word(self, scene: Scene) -> int | None:
        """The word; None where a value does not fit into its bits."""
        if self.beyond is None:
            return scene.instruction.encode() ^ self.flip
        try:
            return scene.having(**dict([self.beyond])).instruction.encode()
        except IllegalInstruction:
            return None


@lru_cache(64)
def around(system: Accelerator, seed: int) -> tuple[Program, int]:
    """A program that fills all memories, and brings them to DRAM behind a YIELD; the number of what follows that."""
    program = random_programs.random_program(system, seed, 0, yields=1e-9)
    return program, program.instructions.index(YIELD) + 1


def program_of(system: Accelerator, scene: Scene) -> tuple[Program, int]:
    """The whole program of a scene, and the number of its instruction."""
    program, at = around(system, scene.seed)
    inner = (*scene.before, scene.instruction, *scene.behind, YIELD)
    return replace(program, instructions=(*program.instructions[:at], *inner, *program.instructions[at:])), at + len(
        scene.before)


class _Groups(random_programs._Maker):
    """A random program, of which one knows what was drawn together."""

    def __init__(self, system, seed):
        super().__init__(system, seed)
        self.groups = []
        self.program(40, 0)

    def _add(self, group):
        self.groups.append(tuple(replace(each, waits=()) for each in group))
        super()._add(group)


@lru_cache(4)
def scenes(system: Accelerator) -> dict[Opcode, list[Scene]]:
    """Opcode -> scenes of random programs, none twice, without waits.

    Before a command of the core stands what has been converted and loaded for it.
    """
    found: dict[Opcode, dict[object, Scene]] = {opcode: {} for opcode in Opcode}

    def add(seed, before, group):
        for place, one in enumerate(group):
            found[one.opcode].setdefault((seed, one.encode()), Scene(
                seed, one, (*before, *group[:place]), group[place + 1:]))
    for seed in range(PROGRAMS):
        before: list[Instruction] = []
        for group in _Groups(system, seed).groups:
            command = tuple(each for each in group if each.opcode in CORE)
            rest = tuple(each for each in group if each not in command)
            if rest:
                add(seed, (), rest)
            if rest and rest[0].opcode in (Opcode.LOAD, Opcode.CONVERT):
                before += [*rest, YIELD]
            if command:
                add(seed, before, command)
    for repeats, columns, *passes in COMMANDS:
        once = {name: 1 for name in ("first", "last", "rows0", "rows1", "passes2")}
        add(0, (), (
            Instruction(Opcode.WEIGHTS, {"tiles": 1, "repeats": repeats}),
            Instruction(Opcode.MULTIPLY, {**once, "tiles": repeats // columns, "columns": columns,
                                          "passes0": passes[0], "passes1": passes[1]}),
            Instruction(Opcode.DRAIN, {"columns": columns, "rows0": 1, "rows1": 1, "column": 1})))
    for each in (YIELD, Instruction(Opcode.HALT, {})):
        add(0, (), (each,))
    numbers = Instruction(Opcode.LOAD, {"memory": Memory.P, "count0": 1, "count1": 1, "count2": 1})
    for seed in range(PROGRAMS):    # numbers as a program of the vector unit
        add(seed, (numbers, YIELD), (Instruction(Opcode.VECTOR, {"count0": 1, "count1": 1, "body": 1}),))
    return {opcode: sorted(each.values(), key=lambda scene: scene.steps) for opcode, each in found.items()}


def legal(instruction: Instruction, system: Accelerator) -> bool:
    """By the instruction set."""
    try:
        check(instruction, system)
    except IllegalInstruction:
        return False
    return True


def _tried(field_, rules, system):
    """Values of a field of which some are its ends under rules."""
    low, high = field_.range
    found = {low, high, 0, 1}
    for rule in rules:
        bounds = rule.bounds(sizes(system))
        found |= {bounds["low"], bounds["high"], low - low % -bounds["step"], high - high % bounds["step"]}
    return sorted(value for value in found if low <= value <= high)


def _possible(when, opcode, system):
    """Whether fields may have these values in some instruction of an accelerator."""
    return any(legal(scene.having(**when).instruction, system) for scene in scenes(system)[opcode])


def _of_field(system, opcode, field_) -> Iterator[Corner]:
    rules: list[Rule] = [rule for rule in RULES[opcode] if field_.name in rule.fields]
    for when in [{}, *(rule.when for rule in rules if rule.when and _possible(rule.when, opcode, system))]:
        name = f"{opcode.name} {field_.name}" + "".join(f", {one} {value}" for one, value in when.items())
        bases = [scene for scene in scenes(system)[opcode]
                 if all(scene.instruction[one] == value for one, value in when.items())]
        ends: dict[int, list[Scene]] = {}
        for base in bases:
            for value in _tried(field_, rules, system):
                changed = base.having(**{field_.name: value})
                if legal(changed.instruction, system):
                    ends.setdefault(value, []).append(changed)
        for what, end, by in (("least", min, -1), ("greatest", max, 1)):
            value = end(ends, default=0)
            if opcode == Opcode.NOP:    # NOP names a unit: the decoder says so, and no rule
                value = max(value, 1)
            found = sorted(ends.get(value, ()), key=lambda scene: scene.steps)
            found = (*found[:TRIES], *found[TRIES:][-len(COMMANDS):])
            yield Corner(f"{name}: {what}", True, found)
            yield Corner(f"{name}: {what}, and one beyond", False, found, beyond=(field_.name, value + by))


def _of_header(system) -> Iterator[Corner]:
    """Opcodes that there are not; waits of every unit and of none; the first and the last bit that no field has."""
    for code in sorted(set(range(1 << HEADER[0].width)) - {int(each) for each in Opcode}):
        yield Corner(f"opcode {code}", False, (Scene(0, Instruction(Opcode.HALT, {})),), flip=code ^ Opcode.HALT)
    for opcode in Opcode:
        some = tuple(scenes(system)[opcode][:TRIES])
        for place in range(WAITS):
            first = (Wait(Unit.LOAD, 0),) * place
            for unit in Unit:
                for count in (0, NEVER) if some[0].instruction.unit else (0,):
                    yield Corner(f"{opcode.name} wait {place}: {count} of {unit.name}", True, tuple(
                        replace(scene, instruction=replace(scene.instruction, waits=(*first, Wait(unit, count))))
                        for scene in some), never=count > 0)
            shift = HEADER[0].width + sum(each.width for each in HEADER[1:2 * place + 2])
            for count in (1, NEVER):
                yield Corner(f"{opcode.name} wait {place}: {count} of no unit", False, some[:1], flip=count << shift)
        for bit in (width(HEADER) + width(FIELDS[opcode]), WORD - 1):
            yield Corner(f"{opcode.name} bit {bit}", False, some[:1], flip=1 << bit)


def drawn(system: Accelerator, opcode: Opcode, count: int) -> Iterator[Corner]:
    """Legal instructions with one field that is anything, for what no corner meets."""
    pick = Random(0)
    for _ in range(count):
        name, scene = pick.choice(FIELDS[opcode]), pick.choice(scenes(system)[opcode])
        changed = scene.having(**{name.name: pick.randint(*name.range)})
        if legal(changed.instruction, system):
            yield Corner(f"{opcode.name} with another {name.name}", True, (changed,))


def corners(system: Accelerator, *opcodes: Opcode) -> list[Corner]:
    """All of an accelerator, or those of fields of some opcodes."""
    found = [] if opcodes else list(_of_header(system))
    for opcode in opcodes or Opcode:
        for each in FIELDS[opcode]:
            found += _of_field(system, opcode, each)
        for rule in RULES[opcode]:
            if rule.must is Must.SOME and len(rule.fields) > 1:
                some = [scene for scene in scenes(system)[opcode] if sum(map(bool, (
                    scene.instruction[name] for name in rule.fields))) == 1][:1]
                name = next(name for name in rule.fields if some[0].instruction[name])
                found.append(Corner(f"{opcode.name} {', '.join(rule.fields)}: all 0", False, tuple(some),
                                    beyond=(name, 0)))
    return found


def expected(system: Accelerator, corner: Corner, scene: Scene) -> Fault | Machine | None:
    """What the golden machine says of a scene of a corner: its fault, the machine at its end, or that it is undefined.
    """
    program, at = program_of(system, scene)
    if not corner.legal:
        word = corner.word(scene)
        try:
            if legal(decode(word), system):
                raise AssertionError(f"{corner.name} is legal")
        except IllegalInstruction:
            pass
        return Fault(Cause.ILLEGAL, corner.name, at)
    if corner.never:
        return Fault(Cause.WATCHDOG, corner.name, at)
    if scene.steps > LONG:
        return None
    machine = Machine(program, races=True)
    try:
        machine.run()
    except Fault as fault:
        return fault    # it may be one of the rest of its command
    except MachineError:
        return None
    return machine
