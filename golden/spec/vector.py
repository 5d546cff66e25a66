"""The vector unit as data: its size, its instructions, their 64-bit words. Contract: docs/design/04-vector-unit.md."""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import IntEnum

from hbfp.checks import check_choice, check_range
from hbfp.functions import parts
from hbfp.isa.instructions import ARGUMENTS
from hbfp.system import COPIES, Accelerator

from .noise import GROUP
from .tables import FUNCTIONS


class Kind(IntEnum):
    """What an instruction does; every other code is reserved."""
    VECTOR = 1     # one pass over the row
    SCALAR = 2     # the same operation, once, on scalars
    SET = 3        # scalar := immediate
    LENGTH = 4     # elements of a row, and rows of a pass := immediates
    ARGUMENT = 5   # scalar := a value from outside, by its number from 1 on
    KEY = 6        # of what dropout draws, and what the numbers are compared with := immediates
    PLACE = 7      # of the next pass that drops, and the steps from each to the next := immediates


class Source(IntEnum):
    """Where an operand comes from."""
    CONSTANT = 0
    REGISTER = 1
    SCALAR = 2     # broadcast over the row
    STREAM = 3     # one beat of the input stream for every beat of the pass


class Target(IntEnum):
    """Where results go."""
    NONE = 0
    REGISTER = 1
    SCALAR = 2     # only of Kind.SCALAR
    STREAM = 3


class Op(IntEnum):
    """First step."""
    MULADD = 0     # a * b + c, each step rounded
    MAX = 1        # maximum of a and b
    GATE = 2       # b where a > 0, else +0


class Reduce(IntEnum):
    """What becomes of the results of a row."""
    NONE = 0
    SUM = 1
    MAX = 2


#: Bit patterns of Source.CONSTANT, by index; -0 is the addend that changes nothing.
CONSTANTS = (0x00000000, 0x3F800000, 0x80000000)
ZERO, ONE, NOTHING = range(3)
#: Second step: nothing, relu, or a function; codes beyond are reserved.
POSTS = ("none", "relu", *FUNCTIONS)
#: Scalars of a unit.
SCALARS = 16
REGISTERS_RANGE, LANES_RANGE, BEATS_RANGE = (1, 16), (1, 64), (1, 8192)
#: Registers inside multipliers and adders.
PRODUCT_RANGE, SUM_RANGE = (0, 5), (0, 7)

#: Bits of LENGTH: of the elements, and of the rows of a pass above them.
LENGTH_BITS, ROWS_BITS = 32, 28

#: Fields of an instruction from bit 0 up; the kind is in the top four bits, all others must be zero.
FIELDS = (("a_source", 2), ("a", 4), ("b_source", 2), ("b", 4), ("c_source", 2), ("c", 4), ("target", 2),
          ("target_index", 4), ("op", 3), ("negate_a", 1), ("negate_c", 1), ("post", 4), ("reduce", 2),
          ("reduce_index", 4), ("drop", 1))
#: Fields that only units with dropout have; they come last, and in all others their bits are zero.
DROPPING = ("drop",)
WORD, KIND = 64, 60
#: Bits of KEY: of the key, and of what numbers are compared with, above it. Of PLACE: of the first beat's place in its
#: tensor, in beats, and of the beats from it to the next pass's, above it.
KEY_BITS, BELOW_BITS, PLACE_BITS, STEP_BITS = 32, 17, 32, 28


@dataclass(frozen=True)
class Operand:
    """One operand: its source and its index there."""
    source: Source = Source.CONSTANT
    index: int = 0


def register(index: int) -> Operand:
    """Vector register."""
    return Operand(Source.REGISTER, index)


def scalar(index: int) -> Operand:
    """Scalar, broadcast."""
    return Operand(Source.SCALAR, index)


def constant(index: int) -> Operand:
    """One of :data:`CONSTANTS`."""
    return Operand(Source.CONSTANT, index)


STREAM = Operand(Source.STREAM)


@dataclass(frozen=True, kw_only=True)
class VectorInstruction:
    """``u = post(op(a, b, c))`` over a row (or once), its target, and a reduction of u into a scalar.

    ``negate_a`` negates the product of MULADD (a of MAX and GATE), ``negate_c`` the addend. The defaults pass ``a``
    on: a * 1 + -0. With ``drop`` operand b is +0 where dropout drops the element. ``immediate`` is for SET, LENGTH,
    ARGUMENT, KEY and PLACE alone; SET and ARGUMENT write the scalar ``target_index``, and ``above`` stands above the
    immediate in LENGTH, KEY and PLACE.
    """
    kind: Kind = Kind.VECTOR
    a: Operand = STREAM
    b: Operand = constant(ONE)
    c: Operand = constant(NOTHING)
    op: Op = Op.MULADD
    negate_a: bool = False
    negate_c: bool = False
    post: str = "none"
    target: Target = Target.NONE
    target_index: int = 0
    reduce: Reduce = Reduce.NONE
    reduce_index: int = 0
    immediate: int = 0
    drop: bool = False
    above: int = 0

    def encode(self) -> int:
        """The 64-bit word."""
        if self.kind in (Kind.SET, Kind.ARGUMENT):
            return self.kind << KIND | self.target_index << 32 | self.immediate
        if self.kind in (Kind.LENGTH, Kind.KEY, Kind.PLACE):
            return self.kind << KIND | self.above << 32 | self.immediate
        values = {"post": POSTS.index(self.post)}
        for name in "abc":
            operand = getattr(self, name)
            values[f"{name}_source"], values[name] = operand.source, operand.index
        word, position = self.kind << KIND, 0
        for name, width in FIELDS:
            word |= int(values[name] if name in values else getattr(self, name)) << position
            position += width
        return word


def length_of(word: int) -> tuple[int, int]:
    """What a word LENGTH says: elements of a row, and rows of a pass; 0 for one row of any length."""
    return word & (1 << LENGTH_BITS) - 1, word >> LENGTH_BITS & (1 << ROWS_BITS) - 1


def field_values(word: int) -> dict[str, int]:
    """Fields of a word as integers, ``kind`` and what lies between as ``spare`` included."""
    result, position = {"kind": word >> KIND}, 0
    for name, width in FIELDS:
        result[name] = word >> position & ((1 << width) - 1)
        position += width
    return result | {"spare": (word & ((1 << KIND) - 1)) >> position}


@dataclass(frozen=True, kw_only=True)
class VectorUnit:
    """Size of a vector unit.

    Parameters
    ----------
    lanes : int
        Elements a cycle, a power of two, 1 to 64.
    beats : int
        Beats of the longest row, 1 to 8192: a row has at most ``lanes * beats`` elements.
    registers : int
        Vector registers, 1 to 16, each one row.
    functions : tuple of str
        Functions that the unit has; the codes of the others are reserved.
    pipeline : int
        Registers inside each function, at most as many as the datapath for all of them has parts.
    function_lanes : int
        Evaluators of functions, a power of two, at most as many as lanes, which they serve in turns; 0: one in each
        lane.
    arguments : int
        Values from outside that programs may read, 0 to 15.
    multiplier : str
        How the hardware forms products, ``plain`` or ``recoded``: equal bits.
    dropping : bool
        Whether passes may drop elements; such a unit has at most 32 lanes.
    short_rows : int
        Rows of one beat that a pass may take one behind the other, 2 to as many as beats; 0: a pass takes one row.
    single : bool
        Whether the memories of the registers have one port, in a bank for even beats of a row and one for odd ones: a
        beat that reads registers waits while one of its bank is written.
    product, sum : int
        Registers inside multipliers and adders of lanes, which are for the carry chains of an FPGA where there are any
        in adders. Reductions add with such adders, too: a beat of a pass that reduces takes ``sum`` cycles more.
    register_copies : int
        Of the registers: 3, one for each operand, or 1: a beat takes a cycle more for each register but one that its
        pass reads.

    Raises
    ------
    ValueError
        If a value is out of range, or lanes share evaluators of no function.
    """
    lanes: int = 8
    beats: int = 16
    registers: int = 8
    functions: tuple[str, ...] = field(default=FUNCTIONS)
    pipeline: int = 4
    function_lanes: int = 0
    arguments: int = field(default=0, metadata={"rare": True})
    multiplier: str = field(default="plain", metadata={"rare": True})
    dropping: bool = field(default=False, metadata={"rare": True})
    short_rows: int = field(default=0, metadata={"rare": True})
    single: bool = field(default=False, metadata={"rare": True})
    register_copies: int = field(default=3, metadata={"rare": True})
    product: int = field(default=0, metadata={"rare": True})
    sum: int = field(default=0, metadata={"rare": True})

    def __post_init__(self):
        check_range("Lanes", self.lanes, *LANES_RANGE)
        if self.lanes & self.lanes - 1:
            raise ValueError(f"Lanes must be a power of two, not {self.lanes}")
        check_range("Beats", self.beats, *BEATS_RANGE)
        check_range("Vector registers", self.registers, *REGISTERS_RANGE)
        object.__setattr__(self, "functions", tuple(self.functions))
        for name in self.functions:
            if name not in FUNCTIONS:
                raise ValueError(f"Function must be one of {', '.join(FUNCTIONS)}, not {name!r}")
        check_range("Function pipeline", self.pipeline, 0, len(parts(self.functions or FUNCTIONS)), " cycles")
        check_range("Function lanes", self.function_lanes, 0, self.lanes)
        if self.function_lanes & self.function_lanes - 1:
            raise ValueError(f"Function lanes must be a power of two, not {self.function_lanes}")
        if self.function_lanes == self.lanes:
            object.__setattr__(self, "function_lanes", 0)
        if self.function_lanes and not self.functions:
            raise ValueError(f"Function lanes must be 0 where the unit has no function, not {self.function_lanes}")
        check_range("Registers of products", self.product, *PRODUCT_RANGE)
        check_range("Registers of sums", self.sum, *SUM_RANGE)
        check_range("Arguments", self.arguments, 0, 15)
        check_choice("Multiplier", self.multiplier, ("plain", "recoded"))
        if self.register_copies not in COPIES:
            raise ValueError(f"Copies of registers must be 1 or 3, not {self.register_copies}")
        if self.dropping:
            check_range("Lanes of dropout", self.lanes, 1, GROUP)
        if self.short_rows:
            check_range("Short rows", self.short_rows, 2, self.beats)
            check_range("Lanes with short rows", self.lanes, 2, LANES_RANGE[1])

    @classmethod
    def of(cls, accelerator: Accelerator) -> "VectorUnit":
        """That of an accelerator."""
        return cls(lanes=accelerator.unit_lanes, beats=accelerator.row_words * accelerator.turns,
                   registers=accelerator.vector_rows, functions=accelerator.functions,
                   pipeline=accelerator.function_pipeline, function_lanes=accelerator.evaluators, arguments=ARGUMENTS,
                   multiplier=accelerator.core.multiplier, dropping=accelerator.stochastic,
                   short_rows=accelerator.short_rows, single=accelerator.single,
                   register_copies=accelerator.register_copies, product=accelerator.vector_registers[0],
                   sum=accelerator.vector_registers[1])

    @property
    def longest(self) -> int:
        """Most elements of a row."""
        return self.lanes * self.beats

    def fetches(self, registers: Collection[int]) -> int:
        """Cycles in which a beat of a pass that reads these registers reads them, the last as it is issued."""
        return len(registers) if self.register_copies == 1 else min(len(registers), 1)

    @property
    def pauses(self) -> bool:
        """Whether a beat of a pass may come more than a cycle behind the one before."""
        return self.function_turns > 1 or self.single or self.register_copies == 1 or self.sum > 0

    @property
    def function_turns(self) -> int:
        """Lanes that an evaluator serves: cycles of a beat of a pass with a function."""
        return self.lanes // (self.function_lanes or self.lanes)

    @property
    def function_delay(self) -> int:
        """Cycles more from a beat to its result with a function than without one: none, unless lanes share it."""
        return self.pipeline + self.function_turns - 1 if self.function_turns > 1 else 0

    @property
    def pass_cycles(self) -> int:
        """Cycles of a pass beyond its beats: issue, operands, product, sum, functions, result."""
        return self._stages + (self.pipeline if self.functions else 0)

    @property
    def plain_cycles(self) -> int:
        """The same of a pass without a function, which does not go through evaluators that lanes share."""
        return self._stages if self.function_turns > 1 else self.pass_cycles

    @property
    def _stages(self) -> int:
        """Cycles of a pass beyond its beats but those of functions."""
        return 5 + self.product + self.sum

    @property
    def reduce_turns(self) -> int:
        """Cycles of a beat of a pass that reduces: those of an adder."""
        return 1 + self.sum

    @property
    def reduce_cycles(self) -> int:
        """Cycles more with a reduction: those of an adder for a beat's last sum and for each level of the tree of lanes
        but one, which writes the scalar.
        """
        return ((self.lanes - 1).bit_length() + 1) * self.reduce_turns

    @property
    def posts(self) -> tuple[int, ...]:
        """Legal codes of the second step."""
        return tuple(code for code, name in enumerate(POSTS) if code < 2 or name in self.functions)
