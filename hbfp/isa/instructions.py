"""Instructions of the accelerator as data: units, opcodes, fields, 512-bit words.

Everything that knows an instruction takes it from here: encoder, decoder, disassembler, golden machine, RTL and page
(docs/design/11-accelerator.md, which says what the fields mean).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from numbers import Integral

from ..checks import check_kind, check_range
from ..values import given

#: Bits and bytes of an instruction.
WORD, BYTES = 512, 64
#: Registers of a context whose values its instructions read, numbered from 1 on: a program's arguments.
ARGUMENTS = 8


class Unit(IntEnum):
    """The units, each with a queue of its own; 0 stands for none where a wait names a unit."""
    LOAD = 1
    STORE = 2
    CONVERT = 3
    WEIGHTS = 4
    MULTIPLY = 5
    DRAIN = 6
    VECTOR = 7


class Opcode(IntEnum):
    """What a word asks for; every other code is reserved. 1 to 7 are the unit's own work."""
    LOAD = 1
    STORE = 2
    CONVERT = 3
    WEIGHTS = 4
    MULTIPLY = 5
    DRAIN = 6
    VECTOR = 7
    NOP = 8      # does nothing, in the queue of ``unit``: more waits for what comes after it
    YIELD = 9    # another context may go on when every unit has done all its work; counts of waits begin anew
    HALT = 15    # the program ends when every unit has done all its work


#: What no unit has: it takes effect when every unit has done all its work.
ENDS = (Opcode.YIELD, Opcode.HALT)


class Memory(IntEnum):
    """Where a load writes."""
    V = 0
    W = 1
    P = 2


@dataclass(frozen=True)
class Field:
    """A field of an instruction: its name, bits, and whether it is a two's complement number."""
    name: str
    width: int
    signed: bool = False

    @property
    def range(self) -> tuple[int, int]:
        """Least and largest value."""
        return (-(1 << self.width - 1), (1 << self.width - 1) - 1) if self.signed else (0, (1 << self.width) - 1)


def _fields(text: str) -> tuple[Field, ...]:
    """Fields from ``name:width`` with an ``s`` behind the width of signed ones."""
    return tuple(Field(name, int(width.rstrip("s")), width.endswith("s"))
                 for name, width in (each.split(":") for each in text.split()))


def _loops(loops, **widths):
    """Fields ``NAMEi:WIDTH`` for each of so many loops, loop by loop, the innermost first."""
    return " ".join(f"{name}{loop}:{width}" for loop in range(loops) for name, width in widths.items())


#: Waits of an instruction, and bits of a unit's count of completed instructions.
WAITS, COUNT_BITS = 3, 24
#: Fields of every instruction, from bit 0 up.
HEADER = _fields("opcode:4 " + " ".join(f"wait{n}_unit:3 wait{n}_count:{COUNT_BITS}" for n in range(WAITS)))


def _slot(name):
    return f"{name}_base:16 {name}_inner:8 {name}_step:16s {name}_stride0:16s {name}_stride1:16s"


#: Input and output slots of a vector instruction.
VECTOR_INPUTS, VECTOR_OUTPUTS = ("i0", "i1", "i2"), ("o0", "o1")
_TRANSFER = "offset:32 " + _loops(3, count=16, dram="32s", buffer="22s") + " base:22 run:7 argument:4 request:6"
#: Opcode -> its own fields, which follow the header from bit 85 up. All bits beyond are zero.
FIELDS = {
    Opcode.LOAD: _fields("memory:2 elements:1 " + _TRANSFER),
    Opcode.STORE: _fields("elements:1 " + _TRANSFER),
    Opcode.CONVERT: _fields("columns:1 to_w:1 base:16 words:16 rows:16 stride:16s target:16 target_word:16s "
                            "target_row:16s stochastic:1 key:32 place:30 place_row:16 wide:1 part:1 prune:1 sparse:1"),
    Opcode.WEIGHTS: _fields("base:16 tiles:16 repeats:16"),
    Opcode.MULTIPLY: _fields(
        "first:1 last:1 scale:1 bias:1 relu:1 tiles:16 columns:12 base:16 "
        "rows0:12 rows1:12 row0:16s row1:16s passes0:12 passes1:8 passes2:8 pass0:16s pass1:16s pass2:16s "
        "bounded:1 x:13s y:13s x_row:8 y_row:8 x_pass:8 y_pass:8 width:12 height:12 wide_x:1 wide_w:1 low:16s "
        "sparse:1"),
    Opcode.DRAIN: _fields("scale:1 bias:1 columns:12 rows0:12 rows1:12 base:16 row0:16s row1:16s column:16s "
                          "scale_base:16 bias_base:16 wide:1 diagonal:1"),
    Opcode.VECTOR: _fields("program:12 before:6 body:8 count0:16 count1:16 taps:1 "
                           + " ".join(map(_slot, (*VECTOR_INPUTS, *VECTOR_OUTPUTS)))),
    Opcode.NOP: _fields("unit:3"),
    Opcode.YIELD: (),
    Opcode.HALT: (),
}
_RANGES = {opcode: {field.name: field.range for field in fields} for opcode, fields in FIELDS.items()}


#: What only some accelerators have -> the fields that they alone have; in all others their bits are zero.
EXTRAS = {"stochastic": ("stochastic", "key", "place", "place_row"),
          "wide": ("wide", "part", "wide_x", "wide_w", "low"), "requests": ("request",), "sparse": ("prune", "sparse")}


def fields_of(opcode: Opcode, extras: Collection[str] = tuple(EXTRAS)) -> tuple[Field, ...]:
    """The fields of an opcode in an accelerator that has these of :data:`EXTRAS`."""
    without = {name for extra, names in EXTRAS.items() if extra not in extras for name in names}
    return tuple(field for field in FIELDS[opcode] if field.name not in without)


class IllegalInstruction(ValueError):
    """A word that is no instruction, or a value that a field cannot hold."""


def width(fields: Iterable[Field]) -> int:
    """Bits of fields."""
    return sum(field.width for field in fields)


assert all(width(HEADER) + width(fields) <= WORD for fields in FIELDS.values())


@dataclass(frozen=True)
class Wait:
    """An instruction starts when ``unit`` has completed ``count`` of its own since the last YIELD, or the start."""
    unit: Unit
    count: int


@dataclass(frozen=True)
class Instruction:
    """One instruction: opcode, waits, and the values of its own fields, those absent being 0.

    Raises
    ------
    IllegalInstruction
        If it has no such field, a value does not fit, or there are more than :data:`WAITS` waits.
    TypeError
        If something is of another type; values and counts are whole numbers.
    """
    opcode: Opcode
    values: Mapping[str, int]
    waits: tuple[Wait, ...] = ()

    def __post_init__(self):
        for what, value, kind in (("Opcode", self.opcode, Opcode), ("Values", self.values, Mapping),
                                  ("Waits", self.waits, tuple)):
            if not isinstance(value, kind):    # programs have many instructions, and a call takes time
                check_kind(what, value, kind)
        known = _RANGES[self.opcode]
        for name, value in self.values.items():
            if name not in known:
                raise IllegalInstruction(f"{self.opcode.name} must have fields {', '.join(known)}, not {name!r}")
            low, high = known[name]
            if type(value) is not int and not isinstance(value, Integral):    # the first is quick
                raise TypeError(f"{self.opcode.name} {name} must be a whole number, not {given(value)}")
            if not low <= value <= high:
                raise IllegalInstruction(f"{self.opcode.name} {name} must be {low} to {high}, not {given(value)}")
        if len(self.waits) > WAITS:
            raise IllegalInstruction(f"An instruction must have at most {WAITS} waits, not {len(self.waits)}")
        for wait in self.waits:
            if type(wait) is not Wait or type(wait.unit) is not Unit or type(wait.count) is not int:
                check_kind("A wait", wait, Wait)
                check_range("A wait's unit", wait.unit, 0, max(Unit))
                check_kind("A wait's count", wait.count, Integral)
            if not 0 <= wait.count < 1 << COUNT_BITS:
                raise IllegalInstruction(f"A wait's count must be 0 to {(1 << COUNT_BITS) - 1}, not {wait.count}")

    @property
    def unit(self) -> Unit | None:
        """Whose queue it goes to; None for YIELD and HALT, which have none."""
        if self.opcode in ENDS:
            return None
        return Unit(self.values.get("unit", 0) if self.opcode == Opcode.NOP else self.opcode)

    def __getitem__(self, name: str) -> int:
        """The value of a field."""
        return self.values.get(name, 0)

    def encode(self) -> int:
        """The word, an integer of :data:`WORD` bits."""
        header: dict[str, int] = {"opcode": self.opcode}
        for number, wait in enumerate(self.waits):
            header |= {f"wait{number}_unit": wait.unit, f"wait{number}_count": wait.count}
        word = position = 0
        for field in (*HEADER, *FIELDS[self.opcode]):
            values = header if position < width(HEADER) else self.values
            word |= (int(values.get(field.name, 0)) & (1 << field.width) - 1) << position
            position += field.width
        return word


def decode(word: int) -> Instruction:
    """The instruction of a word.

    Raises
    ------
    IllegalInstruction
        If the opcode is reserved, a bit without a meaning is set, or NOP names no unit.
    """
    try:
        opcode = Opcode(word & 15)
    except ValueError:
        raise IllegalInstruction(f"Opcode must be one of {', '.join(str(int(code)) for code in Opcode)}, "
                                 f"not {word & 15}") from None
    values, position = {}, 0
    for field in (*HEADER, *FIELDS[opcode]):
        value = word >> position & (1 << field.width) - 1
        values[field.name] = value - (value >> field.width - 1 << field.width) if field.signed else value
        position += field.width
    if word >> position:
        raise IllegalInstruction(f"{opcode.name} must have no bit set above bit {position - 1}")
    header = {field.name: values.pop(field.name) for field in HEADER}
    if opcode == Opcode.NOP and not values["unit"]:
        raise IllegalInstruction("NOP unit must be 1 to 7, not 0")
    waits = []
    for number in range(WAITS):
        unit, count = header[f"wait{number}_unit"], header[f"wait{number}_count"]
        if unit:
            waits.append(Wait(Unit(unit), count))
        elif count:
            raise IllegalInstruction(f"Wait {number} must have a count of 0 without a unit, not {count}")
    return Instruction(opcode, values, tuple(waits))
