"""What the values of an instruction's fields must be, beyond that they fit: rules as data.

The decoder of the Verilog, the golden machine and whoever writes programs take them from here. A word is legal if
:func:`~hbfp.isa.instructions.decode` takes it and :func:`check` finds nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from ..system import Accelerator
from .instructions import ARGUMENTS, EXTRAS, IllegalInstruction, Instruction, Memory, Opcode


class Must(Enum):
    """What fields must be."""
    ZERO = "0"                         # each of them
    SOME = "other than 0"              # at least one of them
    RANGE = "{low} to {high}"          # each
    MULTIPLE = "a multiple of {step}"  # each


@dataclass(frozen=True)
class Rule:
    """What ``fields`` must be where the fields of ``when`` have those values.

    ``low`` and ``high`` of a range, and the step of a multiple (a power of two), are numbers or the name of a size:
    :func:`sizes`.
    """
    fields: tuple[str, ...]
    must: Must
    when: Mapping[str, int] = field(default_factory=dict)
    low: int | str = 0
    high: int | str = 0
    step: int | str = 1

    def bounds(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """``low``, ``high`` and ``step`` as numbers, where the sizes are these by name."""
        return {name: sizes[value] if isinstance(value, str) else value
                for name, value in (("low", self.low), ("high", self.high), ("step", self.step))}


@lru_cache(64)
def sizes(accelerator: Accelerator) -> dict[str, int]:
    """The sizes that rules name."""
    return {"lanes": accelerator.lanes, "rows": accelerator.core.rows, "height": accelerator.core.height,
            **pieces(accelerator.core.rows, accelerator.lanes, accelerator.spread),
            **{extra: int(extra in accelerator.extras) for extra in EXTRAS},
            "requests": accelerator.requests}


def pieces(rows: int, lanes: int, spread: int) -> dict[str, int]:
    """Of these, what rows of the core and lanes of V decide: addresses of X that a word of V fills, and a row of the
    core has; how far, at the least, words lie apart in X whose lanes are rows there, unless rows are lanes; and of
    sparse commands, whose rows are ``spread`` dense ones, addresses of a row, and words of V that fill rows.
    """
    piece = min(rows, lanes)
    return {"word_pieces": lanes // piece, "row_pieces": rows // piece,
            "turned": lanes * (lanes // piece) if rows != lanes else 1,
            "sparse_row": rows // piece * spread, "sparse_words": max(1, rows * spread // lanes)}


def _each(text, **rule):
    """A rule of RANGE or MULTIPLE or ZERO for each field in a text."""
    return Rule(tuple(text.split()), **rule)


def _counted(text):
    """Each field is a count, at least 1: a rule for each."""
    return tuple(Rule((name,), Must.SOME) for name in text.split())


_TRANSFER = (
    *_counted("count0 count1 count2"),
    _each("dram0 buffer0 run", must=Must.ZERO, when={"elements": 0}),
    _each("run", must=Must.RANGE, when={"elements": 1}, low=1, high="lanes"),
    _each("argument", must=Must.RANGE, low=0, high=ARGUMENTS),
    _each("request", must=Must.RANGE, low=0, high="requests"),
)
#: Opcode -> its rules, in the order in which they are looked at.
RULES = {
    Opcode.LOAD: (
        _each("memory", must=Must.RANGE, low=0, high=max(Memory)),
        _each("memory", must=Must.ZERO, when={"elements": 1}),
        *_TRANSFER,
        _each("base buffer1 buffer2", must=Must.MULTIPLE, when={"memory": Memory.W, "elements": 0}, step="height"),
    ),
    Opcode.STORE: _TRANSFER,
    Opcode.CONVERT: (
        *_counted("words rows"),
        _each("target target_word target_row", must=Must.MULTIPLE, when={"to_w": 1}, step="rows"),
        _each("target target_word target_row", must=Must.MULTIPLE, when={"to_w": 0}, step="word_pieces"),
        _each("target_word", must=Must.MULTIPLE, when={"to_w": 0, "columns": 1}, step="turned"),
        _each("target_row", must=Must.ZERO, when={"to_w": 1, "columns": 1}),
        _each("target_word", must=Must.ZERO, when={"to_w": 1, "columns": 0}),
        _each("stochastic", must=Must.RANGE, low=0, high="stochastic"),
        _each("key place place_row", must=Must.ZERO, when={"stochastic": 0}),
        _each("wide", must=Must.RANGE, low=0, high="wide"),
        _each("part", must=Must.ZERO, when={"wide": 0}),
        _each("prune", must=Must.RANGE, low=0, high="sparse"),
        _each("sparse", must=Must.ZERO, when={"prune": 0}),
        _each("sparse", must=Must.ZERO, when={"to_w": 0}),
        _each("sparse", must=Must.ZERO, when={"columns": 1}),
        _each("words", must=Must.MULTIPLE, when={"sparse": 1}, step="sparse_words"),
    ),
    Opcode.WEIGHTS: (
        *_counted("tiles repeats"),
        _each("base", must=Must.MULTIPLE, step="rows"),
    ),
    Opcode.MULTIPLY: (
        *_counted("tiles columns rows0 rows1 passes0 passes1 passes2"),
        _each("columns", must=Must.RANGE, when={"first": 0}, low=1, high=1),
        _each("columns", must=Must.RANGE, when={"last": 0}, low=1, high=1),
        _each("x y x_row y_row x_pass y_pass width height", must=Must.ZERO, when={"bounded": 0}),
        _each("base row0 row1 pass0 pass1 pass2", must=Must.MULTIPLE, step="row_pieces"),
        _each("wide_x wide_w", must=Must.RANGE, low=0, high="wide"),
        _each("low", must=Must.MULTIPLE, step="row_pieces"),
        _each("low", must=Must.ZERO, when={"wide_x": 0}),
        _each("sparse", must=Must.RANGE, low=0, high="sparse"),
        _each("base row0 row1 pass0 pass1 pass2 low", must=Must.MULTIPLE, when={"sparse": 1}, step="sparse_row"),
    ),
    Opcode.DRAIN: (
        *_counted("columns rows0 rows1"),
        _each("scale_base", must=Must.ZERO, when={"scale": 0}),
        _each("bias_base", must=Must.ZERO, when={"bias": 0}),
        _each("wide", must=Must.RANGE, low=0, high="wide"),
        _each("diagonal", must=Must.ZERO, when={"wide": 1}),
    ),
    Opcode.VECTOR: (
        *_counted("count0 count1"),
        _each("before body", must=Must.SOME),
        _each("i1_base i1_stride1 " + " ".join(f"i2_{name}" for name in ("base", "inner", "step", "stride0",
                                                                         "stride1")),
              must=Must.ZERO, when={"taps": 1}),
    ),
    Opcode.NOP: (),
    Opcode.YIELD: (),
    Opcode.HALT: (),
}


def broken(rule: Rule, instruction: Instruction, accelerator: Accelerator) -> str | None:
    """The field, or fields with commas between, at which an instruction breaks a rule; None if it keeps it."""
    return _broken(rule, instruction, sizes(accelerator))


def _broken(rule, instruction, named):
    """:func:`broken`, where the sizes are ``named``; of every instruction of a program, so it looks no further than it
    must."""
    for name, value in rule.when.items():
        if instruction[name] != value:
            return None
    values = [instruction[name] for name in rule.fields]
    if rule.must is Must.SOME:
        return None if any(values) else ", ".join(rule.fields)
    if not any(values) and not (rule.must is Must.RANGE and rule.low):
        return None    # 0 is a multiple of everything, and in every range that begins there
    if rule.must is Must.ZERO:
        fits = [value == 0 for value in values]
    else:
        bounds = rule.bounds(named)
        if rule.must is Must.RANGE:
            fits = [bounds["low"] <= value <= bounds["high"] for value in values]
        else:
            fits = [value % bounds["step"] == 0 for value in values]
    return None if all(fits) else rule.fields[fits.index(False)]


def check(instruction: Instruction, accelerator: Accelerator) -> None:
    """Raise IllegalInstruction, with one line, unless ``accelerator`` may execute ``instruction``."""
    named = sizes(accelerator)
    for rule in RULES[instruction.opcode]:
        name = _broken(rule, instruction, named)
        if name is None:
            continue
        where = " and ".join(f"{other} is {value:d}" for other, value in rule.when.items())
        raise IllegalInstruction(
            f"{instruction.opcode.name} {name} must be {rule.must.value.format(**rule.bounds(named))}"
            f"{f' where {where}' if where else ''}, not {instruction[name.split(', ')[0]]}")
