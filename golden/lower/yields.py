"""Where a program that is there already may give way, and YIELDs in these places.

A YIELD keeps memories and DRAM, and nothing else: it may stand where the core has no command under way, and where
nothing behind it reads a register, a scalar or the length that the vector unit has from before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hbfp.golden.spec.vector import LANES_RANGE, Kind, Source, Target, field_values, length_of
from hbfp.isa.instructions import Instruction, Opcode
from hbfp.isa.vector_words import read
from hbfp.program import Program

from .rewriting import Rewritten, rewritten

#: What the vector unit keeps: (kind, number) of a register or scalar, and the length.
_LENGTH = ("length", 0)
Kept = dict[tuple[str, int], int]


@dataclass
class Uses:
    """What a program of the vector unit does with what it finds.

    Attributes
    ----------
    reads : dict
        What it reads that it has not written itself -> elements of it.
    writes : dict
        What it leaves -> elements of it.
    """
    reads: Kept = field(default_factory=dict)
    writes: Kept = field(default_factory=dict)

    def read(self, what: tuple[str, int], elements: int = 1) -> None:
        """It reads so many elements."""
        if self.writes.get(what, 0) < elements:
            self.reads[what] = max(self.reads.get(what, 0), elements)

    def write(self, what: tuple[str, int], elements: int = 1) -> None:
        """It writes so many elements."""
        self.writes[what] = max(self.writes.get(what, 0), elements)


def places(program: Program) -> NDArray[np.bool_]:
    """Whether a YIELD may stand before each instruction of a program."""
    return _idle(program) & ~_kept(program)


def _idle(program):
    """Whether the core has nothing under way before each instruction."""
    sent = used = multiplied = drained = 0
    found, begun = [], False
    for each in program.instructions:
        found.append(not begun and sent == used and multiplied == drained)
        if each.opcode == Opcode.WEIGHTS:
            sent += each["tiles"] * each["repeats"]
        elif each.opcode == Opcode.MULTIPLY:
            used += each["passes0"] * each["passes1"] * each["passes2"] * each["columns"]
            multiplied += each["last"] * each["columns"]
            begun = not each["last"]
        elif each.opcode == Opcode.DRAIN:
            drained += each["columns"]
    return np.array(found, bool)


def _kept(program):
    """Whether, before each instruction, the vector unit keeps something that is still read."""
    longest = program.accelerator.row_words * program.accelerator.lanes
    uses, length, given = {}, longest, dict(read(program))
    for number, each in enumerate(program.instructions):
        if number in given:
            uses[number], length = followed(given[number], length)
        elif each.opcode == Opcode.YIELD:
            length = longest
    found, live = np.zeros(len(program.instructions), bool), dict[tuple[str, int], int]()
    for number in reversed(range(len(program.instructions))):
        if program.instructions[number].opcode == Opcode.YIELD:
            live = {}
        elif number in uses:
            writes, reads = uses[number].writes, uses[number].reads
            live = {what: elements for what, elements in live.items() if writes.get(what, 0) < elements}
            for what, elements in reads.items():
                live[what] = max(live.get(what, 0), elements)
        found[number] = bool(live)
    return found


def followed(words: Iterable[int | None], length: int) -> tuple[Uses, int]:
    """What a program of the vector unit uses, and the length behind it; that before it is ``length``."""
    uses = Uses()
    for word in words:
        if word is None:    # the host brings it: it may read anything
            uses.read(_LENGTH)
            continue
        f = field_values(word)
        if f["kind"] == Kind.LENGTH:
            elements, rows = length_of(word)
            length = rows * LANES_RANGE[1] or elements     # of several rows all lanes, at most
            uses.write(_LENGTH)
        elif f["kind"] in (Kind.SET, Kind.ARGUMENT):
            uses.write(("scalar", word >> 32 & 15))
        elif f["kind"] in (Kind.KEY, Kind.PLACE):
            uses.write(("drop", f["kind"]))
        else:
            _operate(uses, f, length)
    return uses, length


def _operate(uses, f, length):
    """A pass or a step on scalars."""
    whole = f["kind"] == Kind.VECTOR
    if whole:
        uses.read(_LENGTH)
        for kind in (Kind.KEY, Kind.PLACE) if f["drop"] else ():
            uses.read(("drop", kind))
    for name in "abc":
        if f[f"{name}_source"] == Source.REGISTER:
            uses.read(("register", f[name]), length)
        elif f[f"{name}_source"] == Source.SCALAR:
            uses.read(("scalar", f[name]))
    if whole and f["target"] == Target.REGISTER:
        uses.write(("register", f["target_index"]), length)
    if f["target"] == Target.SCALAR and not whole:
        uses.write(("scalar", f["target_index"]))
    if whole and f["reduce"]:
        uses.write(("scalar", f["reduce_index"]))


def cut(program: Program, before: Sequence[int]) -> Rewritten:
    """A program with a YIELD before each of these instructions, whose numbers ascend.

    Raises
    ------
    ValueError
        If a YIELD may not stand in one of the places.
    """
    allowed = places(program)
    for number in before:
        if not 0 < number < len(program.instructions) or not allowed[number]:
            raise ValueError(f"A YIELD must not stand before instruction {number}: what is under way would be lost")
    return rewritten(program, {number: [Instruction(Opcode.YIELD, {}), program.instructions[number]]
                               for number in before})
