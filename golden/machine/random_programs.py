"""Random legal programs: every opcode, on small memories, with the waits that they need and some that they do not."""

from random import Random

import numpy as np

from hbfp.isa.instructions import ARGUMENTS, WAITS, Instruction, Memory, Opcode, Unit, Wait
from hbfp.program import Program, Region
from hbfp.system import Accelerator

from ..spec.vector import VectorUnit
from .layouts import pack_records
from .machine import Machine
from .random_instructions import Draw
from .random_vectors import vector_programs
from .waits import Accessed, Waits

_ONE = {"count0": 1, "count1": 1, "count2": 1}
#: Words of V in the part of DRAM that programs read and write.
_WORDS = 96


def random_program(accelerator: Accelerator, seed: int, instructions: int = 40, *, yields: float = 0) -> Program:
    """A legal program of about so many instructions, the same for the same seed; ``yields`` is the chance of a YIELD.

    It begins by filling V, W, X and P, so that nothing undefined is read; what comes then is random. It ends by
    bringing all of V to DRAM, then all of W and of X as products with the unit matrix (whose rows take the place of a
    few words of X), so that a difference in any word of a memory is one in DRAM.
    """
    return _Maker(accelerator, seed).program(instructions, yields)


class _Maker:
    """A program under way; a machine executes it as it grows, and tells what its instructions access."""

    def __init__(self, accelerator, seed):
        self.accelerator, self.pick = accelerator, Random(seed)
        self.seed = self.pick.getrandbits(32) if accelerator.stochastic else 0
        self.numbers = np.random.default_rng(seed)
        beat, core = accelerator.beat, accelerator.core
        data = self._floats(_WORDS * accelerator.lanes).tobytes()
        records = b"".join(
            pack_records(accelerator, self._floats(core.rows * accelerator.lanes).reshape(core.rows, -1)
                         )[:core.segments * accelerator.record_beats * beat]
            for _ in range(accelerator.w_words // core.rows))
        vectors, words = vector_programs(VectorUnit.of(accelerator), accelerator.lanes, accelerator.p_words, self.pick)
        self.records_at = len(data)
        self.vectors_at = self.records_at + len(records)
        unit = np.eye(core.rows, accelerator.whole, dtype=np.float32)
        self.unit_at = self.vectors_at + 8 * accelerator.p_words
        self.unit_record_at = self.unit_at + unit.nbytes
        unit_records = pack_records(accelerator, unit[:, :core.rows])
        self.found_at = self.unit_record_at + len(unit_records)
        self.limit = self.found_at + (accelerator.v_words + accelerator.w_words + accelerator.x_pieces) * beat
        self.memory = (Region(0, data), Region(self.records_at, records),
                       Region(self.vectors_at, np.array(words, np.uint64).tobytes()),
                       Region(self.unit_at, unit.tobytes()), Region(self.unit_record_at, unit_records))
        self.arguments = tuple(self._floats(ARGUMENTS).view(np.uint32).tolist())
        self.machine = Machine(Program(accelerator=accelerator, instructions=(), limit=self.limit, memory=self.memory,
                                       arguments=self.arguments, seed=self.seed))
        self.accesses: dict[int, list[Accessed]] = {}
        for memory in (*self.machine.memories.all, self.machine.dram):
            memory.watch = self._watch
        self.waits, self.made, self.tried = Waits(), [], 0
        self.draw = Draw(accelerator, self.pick, vectors, _WORDS, self.records_at, self.vectors_at,
                         self.arguments)

    def _floats(self, count):
        """FP32 numbers of all kinds: small and large, zeros, subnormals, a few infinities and NaN."""
        values = self.numbers.standard_normal(count).astype(np.float32) * np.float32(2) ** self.numbers.integers(
            -6, 7, count).astype(np.float32)
        kind = self.numbers.random(count)
        values[kind < 0.1] = 0
        bits = values.view(np.uint32)
        extreme = kind > 0.998
        bits[extreme] = self.numbers.integers(0, 1 << 32, extreme.sum(), dtype=np.uint32)
        return values

    def _watch(self, memory, addresses, write):
        self.accesses.setdefault(self.machine.order.number, []).append((memory, addresses, write))

    # --- Instructions and their waits -----------------------------------------------------------

    def program(self, instructions, yields):
        """The program."""
        self._fill()
        while len(self.made) < instructions:
            self._add(self.draw.group())
            if yields and self.pick.random() < yields:
                self._yield()
        if yields:
            self._yield()
        self._dump()
        self.made.append(Instruction(Opcode.HALT, {}))
        return Program(accelerator=self.accelerator, instructions=self.made, limit=self.limit, memory=self.memory,
                       arguments=self.arguments, seed=self.seed)

    def _add(self, group):
        """Try instructions that belong together on the machine, and append them with their waits."""
        first = self.tried
        for instruction in group:
            self.machine.step(self.tried, instruction)
            self.tried += 1
        complete = dict(self.waits.counts)    # those of the group are complete when all of it has come
        for number, instruction in enumerate(group, first):
            accesses = self.accesses.pop(number, [])
            needed = self.waits.needed(instruction.unit, accesses)
            waits = {unit: self.pick.choice((count, self.pick.randint(count, max(count, complete[unit]))))
                     for unit, count in needed.items()}
            if len(waits) < WAITS and self.pick.random() < 0.2:
                unit = self.pick.choice(list(Unit))
                waits.setdefault(unit, self.pick.randint(0, complete[unit]))
            while len(waits) > WAITS:
                self._place(Instruction(Opcode.NOP, {"unit": instruction.unit}), {
                    unit: waits.pop(unit) for unit in list(waits)[:WAITS]})
            self._place(instruction, waits, accesses)

    def _yield(self):
        self.machine.step(self.tried, Instruction(Opcode.YIELD, {}))
        self.tried += 1
        self.waits = Waits()
        self.made.append(Instruction(Opcode.YIELD, {}))

    def _place(self, instruction, waits, accesses=()):
        self.waits.add(instruction.unit, waits, accesses)
        self.made.append(Instruction(instruction.opcode, instruction.values, tuple(
            Wait(unit, count) for unit, count in waits.items())))

    def _fill(self):
        """Define every word of the memories."""
        system, core = self.accelerator, self.accelerator.core
        for word in range(0, system.v_words, _WORDS):
            self._add([Instruction(Opcode.LOAD, _ONE | {"base": word, "count0": min(_WORDS, system.v_words - word)})])
        self._add([Instruction(Opcode.LOAD, _ONE | {
            "memory": Memory.W, "offset": self.records_at, "count0": system.w_words // core.height})])
        self._add([Instruction(Opcode.LOAD, _ONE | {
            "memory": Memory.P, "offset": self.vectors_at, "count0": 2 * system.p_words // system.lanes})])
        each = system.whole // system.piece    # addresses of X that a row takes
        for row in range(0, system.x_pieces // each, system.v_words):
            self._add([Instruction(Opcode.CONVERT, {
                "words": 1, "rows": min(system.v_words, system.x_pieces // each - row), "stride": 1,
                "target": row * each, "target_row": each, "target_word": system.word_pieces})])

    def _dump(self):
        """Bring every word of V, W and X to DRAM."""
        system, side = self.accelerator, self.accelerator.core.rows
        at = self._found(self.found_at, system.v_words)
        each, words = system.whole // system.piece, system.whole // system.lanes    # of a row: addresses of X, words
        lost = self.pick.randrange(system.x_pieces // each - side) * each
        few = min(side, system.v_words // words)
        for row in range(0, side, few):
            self._add([Instruction(Opcode.LOAD, _ONE | {"offset": self.unit_at + row * words * system.beat,
                                                        "count0": few * words})])
            self._add([Instruction(Opcode.CONVERT, {"words": words, "rows": few, "stride": words, "target_word":
                                                    system.word_pieces, "target": lost + row * each,
                                                    "target_row": each})])
        many = system.v_words // side    # tiles whose products V holds
        for tile in range(0, system.w_words // side, many):
            tiles = min(many, system.w_words // side - tile)
            self._multiply({"base": tile * side, "tiles": tiles},
                           {"base": lost, "row0": each, "rows0": side, "columns": tiles})
            at = self._found(at, tiles * side)
        record, height = system.record_beats * system.beat, max(side, system.core.format.terms) // system.core.height
        rows = min(system.core.depth, system.v_words, system.x_words)
        for tile in range(system.row_pieces):    # each shows as many lanes of X as there are columns
            self._add([Instruction(Opcode.LOAD, _ONE | {
                "memory": Memory.W, "offset": self.unit_record_at + tile * height * record,
                "count0": system.core.segments})])
            for word in range(0, system.x_words, rows):
                count = min(rows, system.x_words - word)
                self._multiply({"tiles": 1}, {"base": word * system.row_pieces, "row0": system.row_pieces,
                                              "rows0": count, "columns": 1})
                at = self._found(at, count)

    def _multiply(self, weights, values):
        """Commands of one pass each, whose results fill V from its first word on."""
        once = {"rows1": 1, "passes0": 1, "passes1": 1, "passes2": 1, "tiles": 1, "first": 1, "last": 1}
        self._add([Instruction(Opcode.WEIGHTS, {"repeats": 1} | weights),
                   Instruction(Opcode.MULTIPLY, once | values),
                   Instruction(Opcode.DRAIN, {"rows0": values["rows0"], "rows1": 1, "row0": 1,
                                              "columns": values["columns"], "column": values["rows0"]})])

    def _found(self, offset, words):
        """Store the first words of V; the next free place in DRAM."""
        self._add([Instruction(Opcode.STORE, _ONE | {"offset": offset, "count0": words})])
        return offset + words * self.accelerator.beat
