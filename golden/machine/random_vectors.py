"""Random programs of the vector unit, each of which defines all that it reads."""

from dataclasses import dataclass
from random import Random

from ..spec.vector import (
    POSTS,
    STREAM,
    Kind,
    Op,
    Operand,
    Reduce,
    Target,
    VectorInstruction,
    VectorUnit,
    constant,
    register,
    scalar,
)
from ..vector.programs import argument, bits, dropping, length, place


@dataclass(frozen=True)
class VectorProgram:
    """Where a program lies in P, and the words of V that the rows of each slot take.

    Attributes
    ----------
    place, before, body : int
        Number of its first instruction; instructions that are executed once, and those of every iteration.
    words : int
        Words of V that a row takes.
    reads, writes : int
        Most passes of either part that take a row from the input stream, and most that give one.
    """
    place: int
    before: int
    body: int
    words: int
    reads: int
    writes: int


def vector_programs(unit: VectorUnit, width: int, words: int, pick: Random) -> tuple[list[VectorProgram], list[int]]:
    """Random programs that fill ``words`` words of P, and these words; a word of V has ``width`` numbers."""
    programs: list[VectorProgram] = []
    every: list[int] = []
    while len(every) < words - 12:
        maker = _Maker(unit, width, pick)
        before, body = maker.program()
        programs.append(VectorProgram(len(every), len(before), len(body), maker.words, maker.reads, maker.writes))
        every += [instruction.encode() for instruction in (*before, *body)]
    return programs, [*every, *[length(1).encode()] * (words - len(every))]


class _Maker:
    """A program under way: what is defined, and how many rows its passes take and give."""

    def __init__(self, unit, width, pick):
        self.unit, self.width, self.pick = unit, width, pick
        self.registers, self.scalars, self.drops = [], [], False
        self.reads = self.writes = 0
        self.elements = pick.choice((unit.longest, pick.randint(1, unit.longest), pick.randint(1, width)))
        self.rows = 0
        if unit.short_rows and pick.random() < 0.5:
            self.elements, self.rows = pick.randint(1, unit.lanes), pick.randint(2, unit.short_rows)

    @property
    def words(self):
        """Of V, that a pass takes."""
        return self.rows or -(-self.elements // self.width)

    def program(self):
        """Instructions before the loop, and its body: at most 12 together."""
        pick = self.pick
        setting = [length(self.elements, self.rows), *(self._set() for _ in range(pick.randint(0, 2)))]
        if self.unit.dropping and pick.random() < 0.5:
            self.drops = True
            setting += [dropping(pick.getrandbits(32), pick.choice((0, 1 << 16, pick.getrandbits(16)))),
                        place(pick.getrandbits(32), pick.randint(0, 9))]
        if pick.random() < 0.5:    # the body takes length, scalars and registers from what came before
            setting += [self._begin() for _ in range(pick.randint(0, 2))]
            return setting, self._passes()
        return [], [*setting, *self._passes()]

    def _set(self):
        index = self.pick.randrange(16)
        self.scalars.append(index)
        if self.unit.arguments and self.pick.random() < 0.3:
            return argument(index, self.pick.randint(1, self.unit.arguments))
        return VectorInstruction(kind=Kind.SET, target_index=index, immediate=bits(self.pick.uniform(-2, 2)))

    def _begin(self):
        """A register that the body may add to."""
        index = self.pick.randrange(self.unit.registers)
        made = VectorInstruction(a=self._operand(False), target=Target.REGISTER, target_index=index)
        self.registers.append(index)
        return made

    def _passes(self):
        """Passes, of which the last one gives a row to the stream."""
        count = self.pick.randint(1, 5)
        reads = self.pick.randint(1, 3)
        return [self._pass(number < reads, number == count - 1) for number in range(count)]

    def _operand(self, stream):
        choices = [constant(self.pick.randrange(3)), *map(register, self.registers), *map(scalar, self.scalars)]
        return STREAM if stream and self.pick.random() < 0.7 else self.pick.choice(choices)

    def _pass(self, stream, last):
        pick = self.pick
        if not last and self.scalars and pick.random() < 0.2:
            return VectorInstruction(kind=Kind.SCALAR, a=scalar(pick.choice(self.scalars)), c=self._number(),
                                     target=Target.SCALAR, target_index=pick.choice(self.scalars), post=self._post())
        operands: list[Operand] = [STREAM if stream else self._operand(False), self._operand(stream),
                                   self._operand(stream)]
        pick.shuffle(operands)
        a, b, c = operands
        if STREAM in operands:
            self.reads += 1
        target = Target.STREAM if last or pick.random() < 0.2 else pick.choice((Target.REGISTER, Target.NONE))
        index = pick.randrange(self.unit.registers) if target == Target.REGISTER else 0
        reduce = pick.choice((Reduce.NONE, Reduce.NONE, Reduce.SUM, Reduce.MAX))
        reduced = pick.randrange(16) if reduce else 0
        drop = self.drops and pick.random() < 0.6
        made = VectorInstruction(a=a, b=b, c=c, op=pick.choice(list(Op)), drop=drop, negate_a=pick.random() < 0.3,
                                 negate_c=pick.random() < 0.3, post=self._post(), target=target, target_index=index,
                                 reduce=reduce, reduce_index=reduced)
        if target == Target.REGISTER:
            self.registers.append(index)
        if target == Target.STREAM:
            self.writes += 1
        if reduce:
            self.scalars.append(reduced)
        return made

    def _number(self):
        return self.pick.choice([constant(self.pick.randrange(3)), *map(scalar, self.scalars)])

    def _post(self):
        return self.pick.choice(("none", "none", "relu", POSTS[self.pick.choice(self.unit.posts)]))
