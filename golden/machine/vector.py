"""VECTOR: programs of the vector unit on rows of V."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hbfp.isa.instructions import VECTOR_INPUTS, VECTOR_OUTPUTS, Instruction
from hbfp.isa.registers import Cause
from hbfp.system import Accelerator

from ..spec.vector import KIND, Kind, Source, Target, VectorUnit, field_values, length_of
from ..vector import unit as golden
from ..vector.side import ascending
from . import sums
from .errors import Fault, MachineError
from .memories import Memories

#: Most numbers in the registers of all iterations that are computed side by side.
_AT_ONCE = 1 << 22


@dataclass
class _Known:
    """What registers and scalars hold: how many elements of each register are defined, which scalars and for how many
    rows (0: all), and which of what dropout draws with.
    """
    registers: dict[int, int] = field(default_factory=dict)
    scalars: dict[int, int] = field(default_factory=dict)
    drawing: set[int] = field(default_factory=set)

    def write(self, f, word, span, rows):
        """Note what an instruction writes."""
        if f["kind"] == Kind.VECTOR and f["target"] == Target.REGISTER:
            index = f["target_index"]
            self.registers[index] = max(self.registers.get(index, 0), span)
        self.scalars |= dict.fromkeys(_scalars_written(f, word), 0 if f["kind"] in (Kind.SET, Kind.ARGUMENT) else rows)
        self.drawing.update({f["kind"]} & {Kind.KEY, Kind.PLACE})


@dataclass
class _Plan:
    """What a part of a program does in one iteration.

    Attributes
    ----------
    reads, writes : list of (int, int, int)
        Passes that take rows from the stream, and that give some: number of the instruction, elements of a row, and
        rows, as LENGTH says them.
    carried : bool
        Whether it uses registers or scalars that an iteration before it has left.
    """
    reads: list[tuple[int, int, int]] = field(default_factory=list)
    writes: list[tuple[int, int, int]] = field(default_factory=list)
    carried: bool = False


class Vector:
    """The vector unit between its memories; its registers, scalars and length stay up to a YIELD.

    Parameters
    ----------
    accelerator : Accelerator
    memories : Memories
    arguments : sequence of int
        Values of the registers ``argument1`` and so on, as many as are defined.
    seed : int
        Value of the register ``seed``.
    """

    def __init__(self, accelerator: Accelerator, memories: Memories, arguments: Sequence[int] = (), seed: int = 0
                 ) -> None:
        self.arguments, self.seed = arguments, seed
        self.lanes, self.memories, self.unit = accelerator.lanes, memories, VectorUnit.of(accelerator)
        self.row_words = accelerator.row_words
        self.restart()

    def restart(self) -> None:
        """Set the length to the longest and all else to undefined, as at the start of a program."""
        self.machine = golden.Machine(self.unit)
        self.machine.seed = self.seed
        self.known = _Known()

    def run(self, instruction: Instruction) -> None:
        """Execute a VECTOR; raises as ``Machine.run``."""
        counts, before = (instruction["count0"], instruction["count1"]), instruction["before"]
        words = self.memories.p_data[self.memories.p.reads(
            instruction["program"] + np.arange(before + instruction["body"]))].tolist()
        written = np.full(self.memories.v.words, np.iinfo(np.int64).max)
        time = 0
        if before:
            time += self._part(instruction, words[:before], (1, 1), written, time)
        if instruction["body"]:
            self._part(instruction, words[before:], counts, written, time)

    def _part(self, instruction, words, counts, written, time):
        """Execute a part of a program for every iteration; how many instructions of the unit they are."""
        fields = [self._checked(word) for word in words]
        plan = self._plan(words, fields)
        reads = [self._addresses(instruction, self._input(instruction, place), counts, rows or -(-length // self.lanes))
                 for place, (_, length, rows) in enumerate(plan.reads)]
        writes = [self._addresses(instruction, (VECTOR_OUTPUTS[min(place, 1)], 0), counts,
                                  rows or -(-length // self.lanes))
                  for place, (_, length, rows) in enumerate(plan.writes)]
        self._check_order(plan, reads, writes, written, time, len(words))
        total, body, places = counts[0] * counts[1], words, {}
        if plan.carried and Kind.LENGTH not in [f["kind"] for f in fields]:
            body, places = sums.apart(words, fields)
            carried = self._plan(body, [field_values(word) for word in body]).carried
            body, places = (words, {}) if carried else (body, places)
        step = 1 if plan.carried and not places else max(_AT_ONCE // (self.unit.registers * self.unit.longest), 1)
        for first in range(0, total, step):
            self._iterations(body, plan, *([part[first:first + step] for part in parts] for parts in (reads, writes)),
                             min(step, total - first), places)
        return total * len(words)

    # --- What a program does --------------------------------------------------------------------

    def _checked(self, word):
        try:
            golden.check(word, self.unit)
        except golden.ReservedInstruction as error:
            raise Fault(Cause.REFUSED, str(error)) from None
        return field_values(word)

    def _plan(self, words, fields):
        """Follow a part of a program once: what it reads and writes; MachineError where that is undefined."""
        begins = length, rows = self.machine.length, self.machine.rows
        used, every, fresh, plan = set(), _Known(), _Known(), _Plan()
        for word, f in zip(words, fields, strict=True):
            every.write(f, word, self.unit.longest, 0)
        for number, (word, f) in enumerate(zip(words, fields, strict=True)):
            if f["kind"] == Kind.LENGTH:
                length, rows = length_of(word)
            span = rows * self.unit.lanes or length
            if f["kind"] in (Kind.VECTOR, Kind.SCALAR):
                self._note_operands(f, span, rows, every, fresh, plan)
                used.add(number)
            if f["kind"] == Kind.VECTOR:
                if _reads_stream(f):
                    plan.reads.append((number, length, rows))
                if f["target"] == Target.STREAM:
                    plan.writes.append((number, length, rows))
            if f["kind"] == Kind.ARGUMENT and word & 15 > len(self.arguments):
                raise MachineError(f"Argument {word & 15} is read, which the host has not written")
            for known in (self.known, fresh):
                known.write(f, word, span, rows)
        kinds = [f["kind"] for f in fields]
        lengths = kinds.index(Kind.LENGTH) if Kind.LENGTH in kinds else len(kinds)
        if (length, rows) != begins and any(number < lengths for number in used):
            raise MachineError("A program must set the length of a row before its first pass, or leave it as it was")
        return plan

    def _note_operands(self, f, span, rows, every, fresh, plan):
        """Check that operands are defined, and note whether they come from the iteration before."""
        operands = [(f[f"{name}_source"], f[name]) for name in "abc"]
        for index in {index for source, index in operands if source == Source.REGISTER}:
            if self.known.registers.get(index, 0) < span:
                raise MachineError(f"Vector register {index} is read, of which nothing has written {span} elements")
            plan.carried |= index in every.registers and fresh.registers.get(index, 0) < span
        for index in {index for source, index in operands if source == Source.SCALAR}:
            if index not in self.known.scalars:
                raise MachineError(f"Scalar {index} is read, which nothing has written")
            if (there := self.known.scalars[index]) and not 0 < rows <= there:
                raise MachineError(f"Scalar {index} is read for {max(rows, 1)} rows, which a pass over {there} rows "
                                   "has written")
            plan.carried |= index in every.scalars and index not in fresh.scalars
        plan.carried |= f["drop"] > 0 and every.drawing != fresh.drawing
        if f["drop"] and len(self.known.drawing) < 2:
            raise MachineError("A pass drops elements, of which nothing has set the key or the place")

    # --- Addresses ------------------------------------------------------------------------------

    @staticmethod
    def _input(instruction, number):
        """The slot of a pass that reads the stream, and how far behind its base it begins."""
        if not instruction["taps"]:
            return VECTOR_INPUTS[min(number, 2)], 0
        inner = instruction["i1_inner"] or 256
        return "i0", number % inner * instruction["i1_step"] + number // inner * instruction["i1_stride0"]

    def _addresses(self, instruction, place, counts, words):
        """Words of V of one pass in every iteration: (iterations, words)."""
        slot, ahead = place
        inner = instruction[f"{slot}_inner"] or 256
        word = np.arange(words)
        row = instruction[f"{slot}_base"] + ahead + word % inner + word // inner * instruction[f"{slot}_step"]
        i1, i0 = (each.reshape(-1, 1) for each in np.mgrid[:counts[1], :counts[0]])
        return self.memories.v.address(
            row + i0 * instruction[f"{slot}_stride0"] + i1 * instruction[f"{slot}_stride1"])

    def _check_order(self, plan, reads, writes, written, time, size):
        """MachineError if a pass reads a word that it, or one before it in the same instruction, has written.

        ``written`` has the time of the first write of each word. An instruction of the unit takes as many units of it
        as the longest row has words: a pass reads a word of its row in each, and may write it then.
        """
        def times(addresses, number):
            return (time + np.arange(len(addresses))[:, None] * size + number) * self.row_words + np.arange(
                addresses.shape[1])

        for addresses, (number, *_) in zip(writes, plan.writes, strict=True):
            np.minimum.at(written, addresses, times(addresses, number))
        for addresses, (number, *_) in zip(reads, plan.reads, strict=True):
            late = addresses[written[addresses] < times(addresses, number)]
            if late.size:
                raise MachineError(f"V at {int(late[0])} is read by a pass, and written by it or one before it in the "
                                   "same instruction")

    # --- Execution ------------------------------------------------------------------------------

    def _iterations(self, words, plan, reads, writes, count, places):
        """Execute iterations side by side, from the unit's state, which becomes that of the last one.

        Of what they give to the stream, ``places`` -> register are rows that are added up there.
        """
        side, state = golden.Machine(self.unit, (count,)), self.machine
        side.registers[...], side.scalars[...] = state.registers[:, None], state.scalars[:, None]
        side.several[...], side.many = state.several[:, None], set(state.many)
        side.length, side.rows, side.arguments = state.length, state.rows, self.arguments
        side.seed, side.key, side.below, side.step = state.seed, state.key, state.below, state.step
        drops = sum(field_values(word)["drop"] for word in words if word >> KIND == Kind.VECTOR)
        side.place = state.place + np.arange(count) * drops * state.step
        inputs = []
        for addresses, (_, length, rows) in zip(reads, plan.reads, strict=True):
            self._check_read(addresses, length, rows)
            inputs.append(self.memories.v_data[addresses].reshape(count, -1)[:, :rows * self.lanes or length])
        outputs, given = [], side.run(words, inputs)
        for addresses, row, (_, length, rows) in zip(
                writes, (row for place, row in enumerate(given) if place not in places), plan.writes, strict=True):
            filled = np.zeros((count, addresses.shape[1] * self.lanes), np.uint32)
            filled[:, :row.shape[-1]] = row
            filled = filled.reshape(*addresses.shape, self.lanes)
            if rows:
                filled[..., length:] = 0
            outputs.append((addresses, filled))
        self._write(outputs, count)
        totals = {index: np.concatenate([state.registers[index][None, :given[place].shape[-1]], given[place]])
                  for place, index in places.items()}
        state.registers[...], state.scalars[...] = side.registers[:, -1], side.scalars[:, -1]
        for index, rows in totals.items():
            state.registers[index, :rows.shape[-1]] = ascending(rows)
        state.several[...], state.many = side.several[:, -1], side.many
        state.length, state.rows = side.length, side.rows
        state.key, state.below, state.step, state.place = side.key, side.below, side.step, side.place[-1]

    def _check_read(self, addresses, length, rows):
        """Check what a pass reads; of the last word, or of each that is a row, the lanes within the row."""
        if rows:
            self.memories.v.reads(addresses, slice(0, length))
            return
        whole, rest = divmod(length, self.lanes)
        if whole:
            self.memories.v.reads(addresses[:, :whole])
        if rest:
            self.memories.v.reads(addresses[:, whole:], slice(0, rest))

    def _write(self, outputs, count):
        """Write words; where one is written more than once, iteration by iteration."""
        if not outputs:
            return
        every = np.concatenate([addresses.ravel() for addresses, _ in outputs])
        groups = [slice(None)] if len(np.unique(every)) == every.size else range(count)
        for group in groups:
            for addresses, values in outputs:
                self.memories.v_data[self.memories.v.writes(addresses[group])] = values[group]


def _reads_stream(f):
    """Whether a pass takes a row from the stream."""
    return Source.STREAM in (f["a_source"], f["b_source"], f["c_source"])


def _scalars_written(f, word):
    """Scalars that an instruction of the vector unit writes."""
    if f["kind"] in (Kind.SET, Kind.ARGUMENT):
        return [word >> 32 & 15]
    if f["kind"] == Kind.SCALAR:
        return [f["target_index"]] if f["target"] == Target.SCALAR else []
    return [f["reduce_index"]] if f["kind"] == Kind.VECTOR and f["reduce"] else []
